"""The documentation: links lead somewhere, every page is behind one of four doors, and the site builds strictly."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CONFIGURATION = ROOT / "zensical.toml"
#: Outside the site, which checks its own links.
LOOSE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


def headings(path):
    """The anchors that Markdown hosts give to the headings of a page."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken_links(path):
    """The targets of a page's relative links that are not there, files or headings."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"\w+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = path.parent / name if name else path
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in headings(file)):
            yield target


@pytest.mark.parametrize("name", [*LOOSE, *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))])
def test_links_lead_to_files_and_headings(name):
    assert list(broken_links(ROOT / name)) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "other.md").write_text("# Other page\n")
    page = tmp_path / "page.md"
    page.write_text("[a](other.md#other-page) [b](other.md#gone) [c](missing.md) [d](https://example.org)\n")
    assert list(broken_links(page)) == ["other.md#gone", "missing.md"]


def test_every_page_is_behind_one_of_four_doors():
    doors = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))["project"]["nav"]
    assert [name for door in doors for name in door] == ["Start", "My own cell", "Can I trust it", "Reference"]
    pages = [page for door in doors for entries in door.values() for entry in entries for page in entry.values()]
    assert sorted(pages) == sorted(path.name for path in (ROOT / "docs").glob("*.md"))


@pytest.fixture
def build(tmp_path):
    """Builds the site of a copy of the documentation."""
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(CONFIGURATION, tmp_path)

    def run():
        command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


@pytest.mark.slow
def test_the_site_builds_strictly_and_a_broken_link_stops_it(build, tmp_path):
    answer = build()
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "What flexibility costs" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "site" / "report" / "report.html").exists()
    (tmp_path / "docs" / "api.md").write_text("# Python\n\n[gone](nowhere.md)\n", encoding="utf-8")
    assert build().returncode != 0
