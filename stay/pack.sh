#!/usr/bin/env bash
# pack.sh FOLDER TREE…: TensorFlow 2.21, the driver's packages and checkouts, in parts that can be sent. In the project's root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd); out=${1:?FOLDER}; shift
work=/tmp/packing; mkdir -p "$work/wheels"
take() { pip download -qq --only-binary=:all: --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
  --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d "$work/wheels" "$@"; }
take tensorflow==2.21.0 keras==3.15.1 optax==0.2.8 flax==0.12.12 equinox==0.13.8 typer rich msgspec jinja2 psutil packaging altair pytest hypothesis zstandard
take --no-deps nvidia-cuda-runtime-cu12
unpack() { local to=$1; shift; mkdir -p "$to"; for name in "$@"; do unzip -qo -d "$to" "$work"/wheels/"$name"-*.whl; done; }
rm -rf "$work/tfsite" "$work/driver"
unpack "$work/tfsite" tensorflow absl_py astunparse flatbuffers gast google_pasta grpcio h5py keras ml_dtypes namex opt_einsum optree protobuf \
  requests urllib3 certifi idna charset_normalizer six termcolor wrapt typing_extensions packaging wheel setuptools rich markdown_it_py mdurl pygments
unpack "$work/tfsite/cudart12" nvidia_cuda_runtime_cu12
rm -rf "$work/tfsite/tensorflow/include"
unpack "$work/driver" typer rich msgspec jinja2 markupsafe markdown_it_py mdurl pygments shellingham annotated_doc typing_extensions optax absl_py \
  flax equinox jaxtyping wadler_lindig msgpack pytest pluggy iniconfig packaging zstandard treescope pyyaml pydantic pydantic_core annotated_types typing_inspection keras namex h5py optree ml_dtypes psutil \
  hypothesis sortedcontainers altair jsonschema attrs referencing rpds_py jsonschema_specifications narwhals
rm -rf "$out"; mkdir -p "$out/base"
tar cf - -C "$work" driver | zstd -q -9 -T2 -o "$out/base/driver.tzst"
unzip -qo -d "$out/base/zstd" "$work"/wheels/zstandard-*.whl
for tree in "$@"; do git archive --prefix="$tree/" "$tree" src benchmarks tests pyproject.toml results/h200-ptb-lm-forward | zstd -q -9 > "$out/base/$tree.tzst"; done
mkdir -p "$work/out"; rm -rf "$work"/out/*
for begun in archive/h200-begun-*; do [ -e "$begun" ] && cp -r "$begun" "$work/out/${begun#archive/h200-begun-}"; done
tar czf "$out/base/begun.tgz" -C "$work" out
cp "$here"/{start,last,watch}.sh ../shared/h200/setup.sh "$out/base/"
tar cf - -C "$work" tfsite | zstd -q -9 -T2 > "$work/tf.tzst"
room=$((60 * 1024 * 1024)) # nothing else is sent: see README
split -b "$room" -d -a 2 "$work/tf.tzst" "$work/tfpart."
for part in "$work"/tfpart.*; do mkdir "$out/d${part##*.}"; mv "$part" "$out/d${part##*.}/"; done
n=0; size=0; mkdir "$out/e0"
for file in ~/.cache/rnnbench/expected/*.npz; do
  own=$(stat -c %s "$file"); [ "$own" -gt "$room" ] && { echo "too large: $file"; continue; }
  if [ $((size + own)) -gt "$room" ]; then n=$((n + 1)); size=0; mkdir "$out/e$n"; fi
  cp "$file" "$out/e$n/"; size=$((size + own))
done
for part in "$out"/*; do echo "$part: $((($(du -sb "$part" | cut -f1) + 60 * 1024 * 1024 - room) / 1024 / 1024)) MiB with the tree"; done
