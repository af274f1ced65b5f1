"""Text that others wrote reaches no terminal, drawing, spreadsheet or script as anything but text."""

import ast
import csv
import io
import json
from pathlib import Path
from xml.dom import minidom

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as any_

import rnnbench.cli
from made_up import make_case
from report_runs import cpu_run
from rnnbench.report.charts.theme import as_file, as_png, draw
from rnnbench.report.document import Document
from rnnbench.report.write import results_as_csv
from rnnbench.store import append, create_folder
from rnnbench.text import csv_cell, escape_markdown, markdown_code, printable, script_json

NASTY = "a\x00b\x1b[31mred\x9b1m\x7f\r\u202eabc\u2066\u2028\ufffe\ud800\x08z"


def is_harmless(text):
    return all(character.isprintable() or character in "\n\t \u3000" for character in text)


@given(any_.text())
def test_no_control_character_is_left(text):
    shown = printable(text)
    assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)
    assert not any(0x7F <= ord(letter) < 0xA0 or 0x202A <= ord(letter) <= 0x202E for letter in shown)
    assert printable(shown) == shown


@given(any_.text())
def test_within_json_it_means_the_same(text):
    assert json.loads(printable(json.dumps(text, ensure_ascii=False))) == text
    assert json.loads(script_json(json.dumps([text], ensure_ascii=False))) == [text]


def test_what_is_nasty_is_written_out():
    assert is_harmless(printable(NASTY))
    assert printable("naïve – 日本 ✓\n\tx") == "naïve – 日本 ✓\n\tx"
    for escaped in (escape_markdown(NASTY), markdown_code(NASTY)):
        assert is_harmless(escaped)


@pytest.mark.parametrize("text", ["<!--<script>", "</script>", "<script", "]]>", "&lt;"])
def test_json_cannot_end_or_hide_its_script_element(text):
    shown = script_json(json.dumps([text]))
    assert not set("<>&") & set(shown)
    assert json.loads(shown) == [text]


def test_a_drawing_of_control_characters_is_a_drawing():
    """Without the escape, vl-convert aborts this process."""
    values = [{"name": NASTY, "seconds": 1}]
    spec = {
        "title": NASTY, "data": {"values": values}, "mark": "bar",
        "encoding": {"y": {"field": "name", "type": "nominal"}, "x": {"field": "seconds", "type": "quantitative"}},
    }  # fmt: skip
    svg = draw(spec)
    minidom.parseString(as_file(svg, NASTY))
    assert as_png(svg)[1:4] == b"PNG"


@pytest.mark.parametrize("text", ["=1+1", "+A1", "-A1", "@SUM(1)", "=cmd|' /C calc'!A0", "-1+1|x"])
def test_a_formula_is_text(text):
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("value", ["-1.5", "+2", "-1e-09", "plain", "", 3, -2.5, None, "a=b"])
def test_other_cells_are_unchanged(value):
    assert csv_cell(value) == value


def test_the_csv_of_a_report_has_no_formula(tmp_path):
    contents = cpu_run()
    bad = [msgspec.structs.replace(one, reason="=HYPERLINK(1)\x1b", outcome="failed", samples=())
           if hasattr(one, "round") else one for one in contents.records]  # fmt: skip
    document = Document(["=run"], [msgspec.structs.replace(contents, records=tuple(bad))])
    for row in csv.reader(io.StringIO(results_as_csv(document).decode())):
        for cell in row:
            assert cell[:1] not in ("=", "@", "\t", "\r")
            assert is_harmless(cell)


@pytest.mark.parametrize("command", ["show", "explain", "check"])
def test_no_escape_sequence_of_a_run_reaches_the_terminal(call, tmp_path, command):
    contents = cpu_run()
    machine = msgspec.structs.replace(contents.run.machine, cpu="A\x1b]0;title\x07 Processor\x9b2J")
    create_folder(tmp_path / "run", msgspec.structs.replace(contents.run, machine=machine))
    for record in contents.records:
        nasty = {"reason": "it\x1b[2J fell\u202e over"} if getattr(record, "reason", "") else {}
        append(tmp_path / "run", msgspec.structs.replace(record, **nasty))
    answer = call(command, str(tmp_path / "run"))
    assert is_harmless(answer.out + answer.err)
    assert command != "show" or "Processor" in answer.out


def test_an_error_message_is_harmless(call):
    answer = call("show", "no\x1b[31m-such-folder")
    assert answer.code == 2
    assert "\\u001b[31m" in answer.err
    assert is_harmless(answer.err)


def test_commands_print_through_one_function():
    for path in Path(rnnbench.cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr == "echo":
                assert path.name == "options.py", path
            if isinstance(node, ast.Name) and node.id == "print":
                assert path.name in ("main.py", "report.py"), path


def test_a_case_name_is_not_made_up_of_control_characters():
    assert is_harmless(printable(make_case(NASTY.replace("\ud800", "")).key))
