"""Environment specs: `pytorch` and `pytorch==2.9.1` read with the manifests."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments_world import World
from rnnbench.environments.spec import is_version, parse_spec, same_version
from rnnbench.errors import UserError


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_a_framework_means_its_default_version(world: World) -> None:
    spec = parse_spec("toy")
    assert (spec.id, spec.version, spec.variant) == ("toy-1.0", "1.0", "cpu")
    assert spec.requirements == ("toy-lib==1.0", "numpy")


def test_a_version_can_be_named(world: World) -> None:
    world.manifest(constraints=["helper=={version}"], tooling=["pip==21.3.1"])
    spec = parse_spec(" toy == 2.0rc1 ")
    assert spec.id == "toy-2.0rc1"
    assert spec.requirements[0] == "toy-lib==2.0rc1"
    assert spec.constraints == ("helper==2.0rc1",)
    assert spec.tooling == ("pip==21.3.1",)


def test_another_spelling_of_the_default_is_the_same_environment(world: World) -> None:
    assert parse_spec("toy==1.0.0") == parse_spec("toy") == parse_spec("toy==1")


def test_cuda_has_a_separate_environment_only_where_it_differs(world: World) -> None:
    assert parse_spec("toy", "cuda") == parse_spec("toy", "cpu")
    world.manifest(cuda=["toy-lib-cuda=={version}"])
    assert parse_spec("toy", "cuda").id == "toy-1.0-cuda"
    assert parse_spec("toy", "cuda").requirements == ("toy-lib-cuda==1.0",)


def test_the_built_in_manifest_is_read(world: World) -> None:
    assert parse_spec("pytorch==2.9.1").requirements[0] == "torch==2.9.1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("toyy", "nearest: toy"),
        ("toy==", "write it like"),
        ("toy>=1.0", "write it like"),
        ("toy==1.*", "is not a version"),
        ("toy==../../x", "is not a version"),
        ("../toy", "write it like"),
        ("", "write it like"),
    ],
)
def test_what_cannot_be_read_is_reported(world: World, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        parse_spec(text)


def test_an_unknown_device_and_an_uncovered_version(world: World) -> None:
    with pytest.raises(UserError, match="allowed: cpu, cuda"):
        parse_spec("toy", "tpu")
    world.manifest(versions=">=1.0,<2.0")
    with pytest.raises(UserError, match=r"covers versions >=1\.0,<2\.0"):
        parse_spec("toy==2.1")


def test_the_local_part_counts_only_when_asked_for() -> None:
    assert same_version("2.13.0+cpu", "2.13.0")
    assert same_version("2.13.0+cpu", "2.13.0+cpu")
    assert not same_version("2.13.0", "2.13.0+cpu")
    assert not same_version("2.13.1+cpu", "2.13.0")


@given(st.lists(st.integers(0, 999), min_size=1, max_size=4))
def test_trailing_zeros_do_not_make_another_version(numbers: list[int]) -> None:
    version = ".".join(map(str, numbers))
    assert is_version(version)
    assert same_version(f"{version}.0", version)
    assert not same_version(f"{version}.1", version)
