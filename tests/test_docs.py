"""The documentation: links lead somewhere, every page is behind one of four doors, and the site builds strictly."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "zensical.toml"
#: Pages outside the site.
LOOSE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def headings(path):
    """The anchors that Markdown hosts give to the headings of a page."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(path, within=ROOT):
    """The targets of a page's relative links that are not there, files or headings, or not within a folder."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        inside = os.path.normpath(file).startswith(f"{within}/")  # by its name: some files are links
        if not inside or not file.exists() or (anchor and file.suffix == ".md" and anchor not in headings(file)):
            yield target


@pytest.mark.parametrize("name", LOOSE)
def test_links_lead_to_files_and_headings(name):
    assert list(broken_links(ROOT / name)) == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_a_page_of_the_site_links_to_files_and_headings_of_the_site(name):
    """What is outside docs/ is named as code: on the site its link would lead nowhere."""
    assert list(broken_links(ROOT / "docs" / name, ROOT / "docs")) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# Other page\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md#other-page) [b](other.md#gone) [c](missing.md) [d](https://example.org) [e](../up.md)\n"
    )
    (tmp_path.parent / "up.md").touch()
    assert list(broken_links(page, tmp_path)) == ["other.md#gone", "missing.md", "../up.md"]


def test_every_page_is_behind_one_of_four_doors():
    doors = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]["nav"]
    assert [name for door in doors for name in door] == ["Start", "My own cell", "Can I trust it", "Reference"]
    pages = [page for door in doors for entries in door.values() for entry in entries for page in entry.values()]
    assert sorted(pages) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def build(folder):
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_the_site_builds_strictly(tmp_path):
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(CONFIGURATION, tmp_path)
    answer = build(tmp_path)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "What does flexibility cost" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "site" / "report" / "report.html").exists()


@pytest.mark.slow
def test_a_broken_link_stops_the_site(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[gone](nowhere.md)\n")
    (tmp_path / CONFIGURATION.name).write_text('[project]\nsite_name = "small"\n')
    answer = build(tmp_path)
    assert answer.returncode == 1
    assert "page does not exist" in answer.stderr
