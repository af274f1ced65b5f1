"""docs/systems.md agrees with the manifests, and every system in it is explained."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rnnbench.cli.main import app
from rnnbench.errors import UserError
from rnnbench.files import worker_package
from rnnbench.manifests import manifests, read_manifest
from rnnbench.plan import select_systems
from rnnbench.report.systems_page import systems_page

PAGE = Path(__file__).parent.parent / "docs" / "systems.md"

TOY = """
framework = "toy"
title = "Toy 2"
package = "toy-lib|toy-lib-gpu"
version = "2.0"

[[requirements]]
versions = ">=2.0"
python = ">=3.11,<3.14"
cpu = ["toy-lib=={version}"]
cuda = ["toy-lib-gpu=={version}"]

[[requirements]]
versions = "<2.0"
python = ">=3.8"
cpu = ["toy-lib=={version}"]

[[system]]
granularity = "fine"
execution = "eager"
description = "The plain one."
seed = "Toy (2019)"
headline = true

[[system]]
granularity = "fine"
execution = "jit"
description = "Left | right."
seed = "none: too new"
devices = ["cpu"]
tools = ["g++|clang++"]

[[unsupported]]
device = "cpu"
precision = "tf32"
reason = "no such thing"

[[unsupported]]
system = "*/jit"
phase = "train"
precision = "bf16"
reason = "it does not learn in bf16"

[[unsupported]]
system = "*/jit"
loss = "ctc"
variable_length = true
reason = "no CTC"

[[unsupported]]
system = "fine/jit"
loss = "ctc"
variable_length = true
reason = "no CTC"

[[unsupported]]
system = "*/eager"
versions = "<2.0"
reason = "it was slow to come"

[[unsupported]]
system = "stack/*"
reason = "nobody has this"
"""


@pytest.fixture
def built_in():
    """The frameworks that come with rnnbench, without third-party ones."""
    ours = worker_package() / "systems"
    return {name: manifest for name, manifest in manifests().items() if manifest.path.parent == ours}


@pytest.fixture
def toy(tmp_path):
    (tmp_path / "manifest.toml").write_text(TOY)
    manifest = read_manifest(tmp_path)
    return systems_page(manifest.system, {"toy": manifest})


def call(*arguments):
    answer = CliRunner().invoke(app, ["systems", *arguments])
    if answer.exception:
        raise answer.exception
    return answer.output


def test_the_page_agrees_with_the_manifests(built_in):
    systems = [system for manifest in built_in.values() for system in manifest.system]
    how = "a manifest has moved on: .venv/bin/rnnbench systems --markdown > docs/systems.md"
    assert PAGE.read_text(encoding="utf-8") == systems_page(systems, built_in), how


def test_the_command_prints_the_page_of_what_is_chosen():
    chosen = select_systems(("pytorch/cell/*",))
    assert call("pytorch/cell/*", "--markdown") == systems_page(chosen, manifests())
    with pytest.raises(UserError, match="--json and --markdown cannot be combined"):
        call("--markdown", "--json")


def test_every_system_has_a_description_and_a_published_label(built_in):
    listed = [one for one in json.loads(call("--json")) if one["framework"] in built_in]
    assert {one["framework"] for one in listed} == set(built_in)
    unexplained = [
        one["name"]
        for one in listed
        if not one["description"].endswith(".") or len(one["description"]) < 20 or len(one["seed_label"]) < 5
    ]
    assert unexplained == []


def test_the_page_has_the_whole_comparison(built_in):
    assert len(built_in) >= 10
    assert sum(len(manifest.system) for manifest in built_in.values()) >= 55


def test_a_section_describes_its_environment(toy):
    assert "2 systems of 1 frameworks" in toy
    assert "| [Toy 2](#toy-2) | `toy-lib` or `toy-lib-gpu` 2.0 | 2 | fine |" in toy
    installs = "installs `toy-lib==2.0`, with CUDA `toy-lib-gpu==2.0`"
    assert f"Python >=3.11, <3.14; {installs}. Other versions: `<2.0`." in toy


def test_a_row_says_what_differs_from_what_its_section_supports(toy):
    # A gap of one workload or another version is listed below but removes nothing.
    assert "Supports forward, train · cpu: fp32, bf16 · cuda: fp32, tf32, bf16.\n" in toy
    assert "| **`toy/fine/eager`** | The plain one. Published as Toy (2019). |  |" in toy
    apart = "forward · cpu: fp32, bf16; train · cpu: fp32; needs g++ or clang++"
    assert f"| `toy/fine/jit` | Left \\| right. | {apart} |" in toy
    assert "too new" not in toy  # why there is no published label is left to --json


def test_every_gap_of_a_system_shown_is_there_once_with_its_reason(toy):
    assert toy.endswith(
        "\n- `*/jit`, train, in bf16: it does not learn in bf16.\n"
        "- `*/jit`, `fine/jit`, with the loss ctc, with sequences of different lengths: no CTC.\n"
        "- `*/eager`, in versions <2.0: it was slow to come.\n"
    )
    assert "TF32 is a mode of NVIDIA's tensor cores: no CPU has it." in toy  # the manifest's own words for it are not
    assert "no such thing" not in toy
