"""Finding frameworks: built in, in a folder of RNNBENCH_SYSTEMS, and in another package; and bad manifests."""

import re
import sys

import pytest

from rnnbench.errors import UserError
from rnnbench.manifests import _read_all, manifests, read_manifest

GOOD = """
framework = "toy"
title = "Toy"
package = "toy-lib"
version = "1.0"

[[requirements]]
python = ">=3.11"
cpu = ["toy-lib=={version}", "numpy"]

[[system]]
granularity = "fine"
execution = "eager"
description = "Nothing that could be run."
"""

EXPLOSIVE = "raise RuntimeError('this needs a framework that the driver does not have')\n"


@pytest.fixture
def folder(tmp_path):
    """Writes a framework's folder. Its code must never be run by the driver."""

    def write(place, text=GOOD):
        made = tmp_path / place
        made.mkdir(parents=True)
        (made / "manifest.toml").write_text(text)
        (made / "__init__.py").write_text(EXPLOSIVE)
        return made

    return write


@pytest.fixture(autouse=True)
def fresh():
    """A process reads the manifests once: forget them before and after each test."""
    _read_all.cache_clear()
    yield
    _read_all.cache_clear()


def test_pytorch_is_built_in():
    pytorch = manifests()["pytorch"]
    assert pytorch.path.name == "pytorch"
    assert {system.framework for system in pytorch.system} == {"pytorch"}


def test_a_folder_is_found_through_the_variable_by_itself_or_by_its_parent(folder, monkeypatch):
    made = folder("systems/toy")
    for place in (made, made.parent):
        monkeypatch.setenv("RNNBENCH_SYSTEMS", str(place))
        toy = manifests()["toy"]
        assert toy.path == made
        assert [system.name for system in toy.system] == ["toy/fine/eager"]


def test_the_variable_takes_several_folders(folder, monkeypatch):
    one, two = folder("one"), folder("two", GOOD.replace('"toy"', '"toy-2"'))
    monkeypatch.setenv("RNNBENCH_SYSTEMS", f"{one}:{two}:")
    assert {"pytorch", "toy", "toy-2"} <= set(manifests())


def test_a_missing_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"there is no folder .*nowhere") as caught:
        manifests()
    assert "RNNBENCH_SYSTEMS" in caught.value.hint


def test_two_frameworks_of_one_name_are_refused_with_both_places(folder, monkeypatch):
    one, two = folder("one"), folder("two")
    monkeypatch.setenv("RNNBENCH_SYSTEMS", f"{one}:{two}")
    with pytest.raises(UserError, match="two folders have the framework name 'toy'") as caught:
        manifests()
    assert str(one) in caught.value.hint
    assert str(two) in caught.value.hint


def test_a_built_in_framework_cannot_be_replaced(folder, monkeypatch):
    monkeypatch.setenv("RNNBENCH_SYSTEMS", str(folder("mine", GOOD.replace('"toy"', '"pytorch"'))))
    with pytest.raises(UserError, match="two folders have the framework name 'pytorch'"):
        manifests()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Creates a distribution on sys.path that offers a module through the entry point."""

    def install(module):
        info = tmp_path / "site" / "toy_plugin-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plugin\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[rnnbench.systems]\ntoy = {module}\n")
        monkeypatch.syspath_prepend(str(tmp_path / "site"))

    return install


@pytest.mark.parametrize(
    ("module", "place"),
    [
        ("toy_plugin", "site/toy_plugin"),
        ("toy_plugin", "site/toy_plugin/systems_of_ours"),  # the package that contains the folder
        ("toy_plugin.systems.toy", "site/toy_plugin/systems/toy"),
    ],
)
def test_another_packages_folder_is_located_through_its_entry_point_and_never_imported(
    folder, installed, tmp_path, module, place
):
    made = folder(place)
    (tmp_path / "site" / "toy_plugin" / "__init__.py").write_text(EXPLOSIVE)
    installed(module)
    assert manifests()["toy"].path == made
    assert not [name for name in sys.modules if name.startswith("toy_plugin")]


def test_an_entry_point_without_its_module_is_ignored(installed):
    installed("toy_plugin.systems")
    assert "pytorch" in manifests()


BAD = {
    "not TOML": ("framework =", "Invalid value"),
    "no requirements": (GOOD.replace("[[requirements]]", "[[requirement]]"), "unknown field `requirement`"),
    "an unknown field": (GOOD.replace("title", "titel"), "unknown field `titel`"),
    "an unknown field of a system": (GOOD + 'speed = "fast"\n', "unknown field `speed`"),
    "an unknown condition": (GOOD + '[[unsupported]]\nreason = "no"\nos = "linux"\n', "unknown field `os`"),
    "a gap without a reason": (GOOD + '[[unsupported]]\nloss = "ctc"\n', "missing required field `reason`"),
    "a system without a description": (GOOD.replace("description", "#"), "missing required field `description`"),
    "a phase there is not": (GOOD + 'phases = ["backward"]\n', "Invalid enum value 'backward'"),
    "a device there is not": (GOOD + 'devices = ["tpu"]\n', "Invalid enum value 'tpu'"),
    "a granularity there is not": (GOOD.replace('"fine"', '"coarse"'), "granularity 'coarse' is unknown"),
    "a requirement on Python": (GOOD.replace(">=3.11", ">=3.11,new"), "cannot read the version requirement 'new'"),
    "a range of versions": (GOOD.replace("cpu =", 'versions = "~1.0"\ncpu ='), "version requirement '~1.0'"),
    "versions of a gap": (GOOD + '[[unsupported]]\nreason = "no"\nversions = "old"\n', "version requirement 'old'"),
    "a system declared twice": (GOOD + GOOD[GOOD.index("[[system]]") :], "a system is declared twice"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_manifest_is_refused_with_its_place_and_what_is_wrong(folder, kind):
    text, what = BAD[kind]
    made = folder("toy", text)
    with pytest.raises(UserError, match=re.escape(what)) as caught:
        read_manifest(made)
    assert str(made / "manifest.toml") in caught.value.what
    assert caught.value.hint


def test_an_unknown_granularity_is_answered_with_all_granularities(folder):
    with pytest.raises(UserError, match="allowed: fine, packed, cell, layer, stack"):
        read_manifest(folder("toy", GOOD.replace('"fine"', '"coarse"')))
