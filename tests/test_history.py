"""Systems over versions: what is compared with the newest, what never is, and the output."""

import json

import altair as alt
import msgspec
import pytest

from made_up import make_contents, make_launch, make_proof
from report_runs import HOSTILE, case, complete, hostile_run, store, timed
from rnnbench.analysis.history import make_history
from rnnbench.api import Results, version_history
from rnnbench.domain.case import LeftOut
from rnnbench.errors import UserError
from rnnbench.manifests import manifests
from rnnbench.published.rows import published_versions, version_of
from rnnbench.report.charts import theme
from rnnbench.report.charts.versions import versions
from rnnbench.report.comparison import NamedRun
from rnnbench.report.history import as_fields, as_markdown, as_text, draw_history, write_history

STACK = "pytorch/stack/eager"
LIVING = {"2.0.0": 0.8, "2.21.0": 0.4}
WALLS = {"1.0.0": 0.6, "1.12.1": 0.33, "2.13.0": 0.3}


def run_of(walls=WALLS, *, system=STACK, workload="ce-long", left_out=(), records=(), cases=(), **machine):
    """One verified system in several versions with these times."""
    rows = {case(system, workload=workload, version=version): wall for version, wall in walls.items()}
    everything = [record for one, wall in rows.items() for record in timed(one, wall)]
    return complete(make_contents([*rows, *cases], *everything, *records, left_out=left_out), **machine)


def only_line(*runs, **options):
    (line,) = make_history([f"run {number}" for number in range(len(runs))], runs, **options)
    return line


def by_version(line):
    return {point.version: point for point in line.points}


# --- what is compared -----------------------------------------------------------------------------------


def test_each_version_has_a_ratio_to_the_newest_oldest_first():
    line = only_line(run_of({"2.13.0": 0.3, "1.0.0": 0.6, "1.12.1": 0.33}))
    assert [point.version for point in line.points] == ["1.0.0", "1.12.1", "2.13.0"]  # not in alphabetical order
    old, middle, newest = line.points
    assert (old.ratio, middle.ratio) == (pytest.approx(2.0), pytest.approx(1.1))
    assert (newest.ratio, newest.newest, newest.verdict) == (1.0, True, None)
    assert old.verdict == "slower"
    slack = 1e-12  # equal launches have an interval of zero width
    assert all(point.ratio_low - slack <= point.ratio <= point.ratio_high + slack for point in line.points)
    assert all(point.wall_low_s <= point.wall_s <= point.wall_high_s for point in line.points)


def unproved(version, **fields):
    """A measured row of this version with this proof, or without one."""
    one = case(STACK, workload="ce-long", version=version)
    proofs = [make_proof(one, **fields)] if fields else []
    return one, [*proofs, make_launch(one, 0.1, 0.1), make_launch(one, 0.1, 0.1, round=1)]


@pytest.mark.parametrize("proof", [{}, {"verdict": "wrong", "error": 0.5, "reason": "off"}])
@pytest.mark.parametrize("version", ["0.9", "1.5", "3.0"])
def test_a_row_that_is_not_verified_has_no_ratio_and_is_never_the_newest(proof, version):
    one, records = unproved(version, **proof)
    points = by_version(only_line(run_of(cases=[one], records=records)))
    lone = points.pop(version)
    assert lone.status in ("unverified", "wrong")
    assert lone.wall_s is not None
    assert (lone.ratio, lone.ratio_low, lone.ratio_high, lone.verdict, lone.newest) == (None, None, None, None, False)
    assert points["2.13.0"].newest
    assert points["1.0.0"].ratio == pytest.approx(2.0)


def test_without_any_verified_row_there_are_times_and_no_ratio():
    first, second = unproved("1.0"), unproved("2.0")
    contents = complete(make_contents([first[0], second[0]], *first[1], *second[1]))
    line = only_line(contents)
    assert [point.ratio for point in line.points] == [None, None]
    assert all(point.wall_s for point in line.points)
    assert draw_history([line], [NamedRun("a", contents.run)]) == []


def test_a_version_that_could_not_be_installed_is_shown_with_its_reason():
    reason = "no interpreter: no Python ==3.6 here"
    lost = LeftOut(case=case(STACK, workload="ce-long", version="1.3.1"), reason=reason)
    contents = run_of(left_out=[lost])
    environments = {name: one for name, one in contents.run.environments.items() if name != "pytorch-1.3.1"}
    bare = msgspec.structs.replace(contents, run=msgspec.structs.replace(contents.run, environments=environments))
    point = by_version(only_line(bare))["1.3.1"]
    assert (point.status, point.reason, point.python, point.wall_s) == ("unsupported", reason, "", None)


def test_runs_of_one_machine_are_compared_and_the_newest_may_be_in_either():
    old, new = run_of({"1.0.0": 0.6}), run_of({"2.13.0": 0.3})
    for runs in ((old, new), (new, old)):
        line = only_line(*runs)
        assert [point.ratio for point in line.points] == [pytest.approx(2.0), 1.0]


def test_of_one_version_in_two_runs_the_last_one_given_is_the_newest():
    again = run_of({"2.13.0": 0.36})
    line = only_line(run_of(), again)
    assert [(point.version, point.run, point.newest) for point in line.points][-2:] == [
        ("2.13.0", "run 0", False),
        ("2.13.0", "run 1", True),
    ]
    assert line.points[-2].verdict == "faster"


def test_another_difference_prevents_a_ratio_unless_it_is_to_be_ignored():
    old, new = run_of({"1.0.0": 0.6}, cpu="Another Processor"), run_of({"2.13.0": 0.3})
    stopped = by_version(only_line(old, new))["1.0.0"]
    assert stopped.ratio is None
    assert stopped.reason == "not compared: machine differ"
    assert by_version(only_line(old, new, across=["machine"]))["1.0.0"].ratio == pytest.approx(2.0)


def test_a_system_with_one_version_has_no_history():
    with pytest.raises(UserError, match="was planned in two versions and timed in one of them") as caught:
        make_history(["a"], [run_of({"2.13.0": 0.3})])
    assert "--versions" in caught.value.hint


def test_systems_and_workloads_are_chosen():
    contents = run_of()
    assert only_line(contents, systems=["pytorch/*/eager"], workloads=["ce-long"]).system == STACK
    for chosen in ({"systems": ["jax/*"]}, {"workloads": ["ce-short"]}):
        with pytest.raises(UserError):
            make_history(["a"], [contents], **chosen)


# --- historic systems and their successors ---------------------------------------------------------


def succession(*heirs, living=LIVING, old=1.2):
    """Historic systems and their current successors, all in one run."""
    rows = {case(f"old{number}/cell/graph", version="1.8.0"): old for number, _ in enumerate(heirs)}
    rows |= {case("new/cell/graph", version=version): wall for version, wall in living.items()}
    contents = complete(
        make_contents(list(rows), *[record for one, wall in rows.items() for record in timed(one, wall)])
    )
    systems = dict(contents.run.systems)
    for number, heir in enumerate(heirs):
        name = f"old{number}/cell/graph"
        systems[name] = msgspec.structs.replace(systems[name], successor=heir, biases=2)
    return msgspec.structs.replace(contents, run=msgspec.structs.replace(contents.run, systems=systems))


def test_a_historic_system_comes_before_its_successor_and_is_compared_with_it():
    contents = succession("new/cell/graph")
    line = only_line(contents)
    assert line.name == "old0/cell/graph → new/cell/graph"
    assert [point.release for point in line.points] == ["old0 1.8.0", "new 2.0.0", "new 2.21.0"]
    assert [point.ratio for point in line.points] == [pytest.approx(3.0), pytest.approx(2.0), 1.0]
    text = as_text([line], [NamedRun("a", contents.run)])
    assert "old0 1.8.0" in text
    spec = versions([line], title="a title", subtitle="a machine")
    assert spec["layer"][1]["encoding"]["x"]["scale"]["domain"] == ["old0 1.8.0", "new 2.0.0", "new 2.21.0"]


def test_two_systems_with_one_successor_have_a_line_each_and_one_without_a_run_successor_has_none():
    contents = succession("new/cell/graph", "new/cell/graph", "elsewhere/cell/graph")
    lines = make_history(["a"], [contents])
    assert [line.predecessor for line in lines] == ["old0/cell/graph", "old1/cell/graph"]
    rows = versions(lines, title="", subtitle="")["datasets"]["rows"]
    names = {datum["framework"].partition(" · ")[0] for datum in rows}  # with the newest version's time, for the legend
    assert names == {
        "old0/cell/graph",
        "old1/cell/graph",
    }  # both have the same successor, so its name would be ambiguous


def test_successors_may_have_one_version_and_must_be_verified_too():
    line = only_line(succession("new/cell/graph", living={"2.0.0": 0.8}))
    assert [point.ratio for point in line.points] == [pytest.approx(1.5), 1.0]


def test_every_successor_in_the_manifests_exists():
    known = {system.name: system for manifest in manifests().values() for system in manifest.system}
    heirs = {system.name: system.successor for system in known.values() if system.successor}
    assert len(heirs) == 6
    for name, heir in heirs.items():
        assert heir in known, name
        assert not known[heir].successor


# --- published times ---------------------------------------------------------------------------------


def test_the_times_of_braun_2018_are_found_oldest_first_from_the_finer_table():
    rows = published_versions(STACK, "ce-long", "train")
    assert [version_of(row) for row in rows] == ["0.1.12_2", "0.2.0_4", "0.3.1.post2", "0.4.0"]
    assert (rows[-1].wall_s, rows[-1].wall_std_s) == (pytest.approx(0.07954), pytest.approx(0.00079))
    (short,) = published_versions("pytorch/cell/eager", "ce-short", "train")
    assert (version_of(short), short.wall_s) == ("0.4.0", 0.018)
    assert published_versions("pytorch/packed/eager", "ce-long", "train")[0].implementation == "LSTMCell-basic"


@pytest.mark.parametrize(
    ("system", "workload", "phase", "precision"),
    [
        (STACK, "ce-long[batch=8]", "train", "fp32"),
        (STACK, "ce-long", "forward", "fp32"),
        (STACK, "ce-long", "train", "bf16"),
        ("pytorch/fine/eager", "ce-long", "train", "fp32"),
        ("tensorflow/packed/graph-while", "ce-long", "train", "fp32"),
    ],
)
def test_nothing_else_was_published(system, workload, phase, precision):
    assert published_versions(system, workload, phase, precision) == ()


def test_published_times_have_no_ratio_and_are_marked_as_another_machine():
    contents = run_of()
    line = only_line(contents)
    titled = [NamedRun("a", contents.run)]
    text = as_text([line], titled)
    published = [row for row in text.splitlines() if "published: 2018" in row]
    assert len(published) == 4
    assert all("another machine" in row and "×" not in row for row in published)
    (fields,) = as_fields([line], titled)["lines"]
    assert all(row["another_machine"] and "ratio" not in row for row in fields["published"])
    assert as_markdown([line], titled).count("another machine") >= 4


# --- output ------------------------------------------------------------------------------------


def test_the_table_has_times_ratios_and_reasons():
    one, records = unproved("1.5")
    contents = run_of(workload="ce-long", cases=[one], records=records)
    rows = {
        line.split()[0]: line
        for line in as_text([only_line(contents)], [NamedRun("a", contents.run)]).splitlines()
        if line
    }
    assert "2.00×" in rows["1.0.0"]
    assert "slower than the newest" in rows["1.0.0"]
    assert "the newest" in rows["2.13.0"]
    assert "unverified" in rows["1.5"]
    assert "×" not in rows["1.5"]


def test_charts_are_valid_and_draw_only_what_was_compared():
    one, records = unproved("1.5")
    line = only_line(run_of(cases=[one], records=records))
    spec = versions([line], title="a title", subtitle="a machine")
    alt.HConcatChart.from_dict({**spec, "config": theme.CONFIG}, validate=True)
    assert {datum["version"] for datum in spec["datasets"]["rows"]} == set(WALLS)
    assert [datum["wall"] for datum in spec["datasets"]["rows"]] == pytest.approx([2.0, 1.1, 1.0])
    published, measured = spec["hconcat"]
    assert "another machine" in published["title"]["subtitle"][0]
    assert len(spec["datasets"]["published"]) == 4
    plain = versions([only_line(run_of(workload="ptb-lm"))], title="a title", subtitle="a machine")
    alt.LayerChart.from_dict({**plain, "config": theme.CONFIG}, validate=True)
    assert measured["layer"][1]["encoding"]["x"]["scale"]["domain"] == list(WALLS)
    narrow = versions([line], title="a title", subtitle="a machine", width=theme.NARROW)
    alt.VConcatChart.from_dict({**narrow, "config": theme.CONFIG}, validate=True)


def test_the_command_prints_and_writes_the_same_every_time(tmp_path, call):
    folder = str(store(tmp_path / "run", run_of()))
    assert "pytorch/stack/eager   ce-long · train · cpu · fp32" in call("history", folder).out
    fields = call("history", folder, "--json").json
    assert [point["version"] for point in fields["lines"][0]["points"]] == list(WALLS)
    for out in ("first", "second"):
        answer = call("history", folder, "--out", str(tmp_path / out))
        assert answer.code == 0
    names = sorted(str(path.relative_to(tmp_path / "first")) for path in (tmp_path / "first").rglob("*.*"))
    assert names == [
        "charts/versions-pytorch-ce-long-train-cpu-fp32.png",
        "charts/versions-pytorch-ce-long-train-cpu-fp32.svg",
        "history.csv",
        "history.html",
        "history.json",
        "history.md",
    ]
    for name in names:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    headings = (tmp_path / "first" / "history.csv").read_text().splitlines()[0].split(",")
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--out", "a", "--json"], "--out and --json cannot be combined"),
        (["--across", "colour"], "allowed: environment, source, machine, method"),
        (["--system", "jax/*"], "was planned in two versions"),
        (["--out", "a", "--format", "pdf"], "is not a format"),
    ],
)
def test_bad_input_ends_with_2(tmp_path, monkeypatch, call, arguments, says):
    folder = str(store(tmp_path / "run", run_of()))
    monkeypatch.chdir(tmp_path)
    answer = call("history", folder, *arguments)
    assert answer.code == 2
    assert says in answer.err


def test_markup_in_a_run_is_escaped(tmp_path):
    contents = hostile_run()
    lines = make_history([HOSTILE], [contents])
    write_history(lines, [NamedRun(HOSTILE, contents.run)], tmp_path, ["html", "md", "svg"])
    for path in tmp_path.rglob("*.*"):
        text = path.read_text()
        assert "<script" not in text
        assert "<img" not in text


def test_the_api_gives_the_same_history(tmp_path):
    results = Results(run_of())
    (line,) = version_history(results, systems=[STACK])
    assert by_version(line)["1.0.0"].ratio == pytest.approx(2.0)
    with pytest.raises(UserError, match="colour"):
        version_history(results, across=["colour"])
    assert json.loads(msgspec.json.encode(line))["system"] == STACK
