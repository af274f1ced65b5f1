#!/usr/bin/env bash
# start.sh SECONDS TREE…: on the machine with a GPU, from the folder that pack.sh wrote.
set -u
here=$(cd "$(dirname "$0")" && pwd); seconds=$1; shift
mkdir -p /tmp/w /tmp/tf ~/.cache/rnnbench/expected
PYTHONPATH=$here/zstd python3 - "$here" "$@" <<'Q'
import sys, tarfile, zstandard
for name in ["driver", *sys.argv[2:]]:
    with open(f"{sys.argv[1]}/{name}.tzst", "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        with tarfile.open(fileobj=stream, mode="r|") as tar: tar.extractall("/tmp/w")
Q
tar xzf "$here/begun.tgz" -C /tmp/w
cp "$here"/{last,watch,setup}.sh /tmp/w/
torch=$(python3 -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
export LD_LIBRARY_PATH=/tmp/tf/lib:$torch/nvidia/cudnn/lib:/usr/local/cuda-13.0/targets/x86_64-linux/lib
export PYTHONPATH=/tmp/w/driver PYTHONUNBUFFERED=1
(export -p) > /tmp/w/variables
trees=(); for tree in "$@"; do trees+=("/tmp/w/$tree"); done
cd "/tmp/w/$1"
nvidia-smi --query-gpu=name,clocks.sm,clocks.max.sm,temperature.gpu --format=csv; nproc; which compute-sanitizer
setsid nohup python3 benchmarks/gpu_stay.py /tmp/w/out --seconds "$seconds" --ready /tmp/w/ready --trees "${trees[@]}" ${STEPS:+--steps $STEPS} \
  > /tmp/w/stay.log 2>&1 < /dev/null &
for framework in pytorch jax flax equinox keras-jax keras-torch; do PYTHONPATH=/tmp/w/$1/src:$PYTHONPATH python3 -m rnnbench env use $framework "$(which python3)"; done
sleep 1; cat /tmp/w/stay.log
