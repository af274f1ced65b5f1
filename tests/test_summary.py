"""Every sentence is parsed and derived again from the rows: it is true for any numbers."""

import math
import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis_runs import MadeUpRow, contents_of, make_limit
from rnnbench.analysis.row import is_verified, over
from rnnbench.analysis.rows import measure_rows
from rnnbench.report.document import analyse

NOISE = 0.02
SYSTEMS = [
    *(f"toy/fine/{way}" for way in ("eager", "script", "compile")),
    *(f"other/fine/{way}" for way in ("eager", "jit")),
    *(f"toy/packed/{way}" for way in ("eager", "compile")),
    *("toy/stack/eager", "other/layer/graph"),
]

#: Close together, a little apart, and far apart, so that all of what can be said is said.
WALLS = st.sampled_from([1.0, 1.01, 1.03, 1.1, 1.5, 4.0])
BLOCKS = st.lists(st.sampled_from([0.9, 0.97, 1.0, 1.0, 1.02, 1.15]), min_size=1, max_size=5)


@st.composite
def rows(draw):
    made = []
    for system in draw(st.lists(st.sampled_from(SYSTEMS), min_size=1, max_size=7, unique=True)):
        for environment in draw(st.sampled_from([("toy-1.0",), ("toy-1.0",), ("toy-1.0", "toy-2.0")])):
            wall = draw(WALLS)
            launches = [
                [wall * factor for factor in blocks] for blocks in draw(st.lists(BLOCKS, min_size=1, max_size=3))
            ]
            start = {
                "first_call_s": draw(st.sampled_from([None, wall, wall + 10])),
                "peak_host_bytes": draw(st.sampled_from([None, 100_000_000, 250_000_000, 900_000_000])),
                "noisy": draw(st.booleans()),
            }
            verdict = draw(st.sampled_from(["verified", "verified", "verified", "wrong", "failed"]))
            made.append(MadeUpRow(system, *launches, environment=environment, verdict=verdict, start=start))
    return made


class Truth:
    """What the sentences of a group must agree with, from its rows and their levels alone."""

    def __init__(self, made, contents):
        systems = [one.system for one in made]
        names = [f"{one.system} @ {one.environment}" if systems.count(one.system) > 1 else one.system for one in made]
        self.measured = dict(zip(names, measure_rows(contents), strict=True))
        self.rows = {name: (one, self.measured[name].row) for name, one in zip(names, made, strict=True)}
        self.verified = {name: row for name, (_, row) in self.rows.items() if is_verified(row)}
        self.best = min(self.verified, key=lambda name: self.verified[name].wall_s, default=None)

    @cache  # noqa: B019 - it lives for one example
    def ratio(self, name, base):
        return over(self.measured[name], self.measured[base])

    def slower(self, name, base):
        return self.ratio(name, base).low > 1 + NOISE

    def faster(self, name, base):
        return self.ratio(name, base).high < 1 / (1 + NOISE)

    def compile_s(self, name):
        one, row = self.rows[name]
        first = one.start["first_call_s"]
        return 0.0 if first is None else max(0.0, first - row.wall_s)

    def memory(self, name):
        return self.verified[name].peak_host_bytes

    def is_eager_fine(self, name):
        row = self.verified[name]
        return (row.granularity, row.execution) == ("fine", "eager")


NAME = r"(\S+(?: @ \S+)?)"
NUMBER = r"(-?[\d,.]+)±?"
TIME = r"(-?[\d,.]+ (?:s|ms|µs))"
SPAN = rf"\[{NUMBER}, {NUMBER}\]"


def near(text, value):
    """As printed: three figures."""
    return float(text.replace(",", "")) == pytest.approx(value, rel=0.006, abs=0.0051)


def lasts(text, seconds):
    number, unit = text.split()
    return near(number, seconds / {"s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit])


def names_in(text):
    return re.split(r", | and ", text)


def check(truth, text):
    """Whether a printed sentence is true; None if no pattern matches it."""
    for pattern, holds in READERS:
        match = re.fullmatch(pattern, text)
        if match:
            return holds(truth, *match.groups())
    return None


def fastest(truth, name, count, low_wall, high_wall, second, times, low, high):
    others = [one for one in truth.verified if one != name]
    found = truth.ratio(second, name)
    return (
        name == truth.best
        and len(truth.verified) == int(count)
        and all(truth.slower(one, name) for one in others)
        and second == min(others, key=lambda one: truth.verified[one].wall_s)
        and all(map(near, (times, low, high), (found.estimate, found.low, found.high)))
    )


def level(truth, name, low_wall, high_wall, others, slower):
    level_rows = set(names_in(others))
    rest = set(truth.verified) - level_rows - {name}
    return (
        name == truth.best
        and not any(truth.slower(one, name) for one in level_rows)
        and all(truth.slower(one, name) for one in rest)
        and len(rest) == int(slower or 0)
    )


def cost(truth, name, memory, compile_time, lean, lean_memory):
    known = [one for one in truth.verified if truth.memory(one) is not None]
    return (
        name == truth.best
        and (memory is None or near(memory, truth.memory(name) / 1e6))
        and (compile_time is None or lasts(compile_time, truth.compile_s(name)))
        and (lean is None or truth.memory(lean) == min(truth.memory(one) for one in known))
        and (lean is None or near(lean_memory, truth.memory(lean) / 1e6))
    )


def reaches(truth, name, share, low, high):
    row = truth.verified[name]
    return name == truth.best and row.limit_share_low <= 1 and near(share, 100 * row.limit_s / row.wall_s)


def gap(truth, name, times, low, high, best):
    found = truth.ratio(name, best)
    return (
        best == truth.best
        and truth.is_eager_fine(name)
        and truth.slower(name, best)
        and all(map(near, (times, low, high), (found.estimate, found.low, found.high)))
    )


def no_gap(truth, name, best):
    return best == truth.best and truth.is_eager_fine(name) and not truth.slower(name, best)


def eager_of(truth, name):
    """The name of the same program, run eagerly."""
    row = truth.verified[name]
    same = [
        other
        for other, one in truth.verified.items()
        if one.execution == "eager"
        and (one.framework, one.granularity, one.environment) == (row.framework, row.granularity, row.environment)
    ]
    return same[0]


def recovered(truth, name, share, low, high):
    eager = eager_of(truth, name)
    mine, slow, fast = (truth.verified[one].wall_s for one in (name, eager, truth.best))
    return (
        truth.faster(name, eager)
        and truth.slower(eager, truth.best)
        and near(share, 100 * math.log(slow / mine) / math.log(slow / fast))
        and float(low) <= float(share) <= float(high)
    )


def nothing_recovered(truth, name, certain, times, low, high, eager):
    found = truth.ratio(name, eager)
    slower = truth.slower(name, eager)
    return (
        eager == eager_of(truth, name)
        and (slower if certain == "wins nothing" else not slower and not truth.faster(name, eager))
        and near(times, found.estimate)
    )


def pays(truth, name, spent, eager, batches, low, high):
    price = max(0.0, truth.compile_s(name) - truth.compile_s(eager))
    saved = truth.verified[eager].wall_s - truth.verified[name].wall_s
    return (
        truth.faster(name, eager)
        and eager == eager_of(truth, name)
        and lasts(spent, price)
        and float(batches.replace(",", "")) == pytest.approx(max(1, price / saved), abs=0.51)
        and float(low.replace(",", "")) <= float(batches.replace(",", "")) <= float(high.replace(",", ""))
    )


def wrong(truth, names):
    return set(names_in(names)) == {name for name, (_, row) in truth.rows.items() if row.status == "wrong"}


def above(truth, names):
    rows = {name: row for name, (_, row) in truth.rows.items() if row.above_limit and row.status != "wrong"}
    return set(names_in(names)) == set(rows) and all(row.limit_share_low > 1.1 for row in rows.values())


def unsteady(truth, names):
    return set(names_in(names)) == {name for name, row in truth.verified.items() if row.steady is False}


def once(truth, count, of):
    return (int(count), int(of)) == (sum(row.launches == 1 for row in truth.verified.values()), len(truth.verified))


def busy(truth, count, of):
    return (int(count), int(of)) == (sum(row.noisy for row in truth.verified.values()), len(truth.verified))


READERS = [
    (r"No row is verified, so nothing can be said about speed\.", lambda truth: not truth.verified),
    (rf"{NAME} is the only verified row: .* a batch\.", lambda truth, name: [name] == list(truth.verified)),
    (
        rf"{NAME} is the fastest of (\d+) verified rows: \S+ \S+ {SPAN} a batch\. "
        rf"The next, {NAME}, takes {NUMBER} times {SPAN} as long\.",
        fastest,
    ),
    (
        rf"{NAME} has the lowest time, \S+ \S+ {SPAN} a batch, but no difference is seen between it and "
        r"(.+?)\.(?: (\d+) more (?:row is|rows are) slower\.)?",
        level,
    ),
    (
        rf"{NAME} needs (?:{NUMBER} MB of memory)?(?: and )?(?:{TIME} of compiling and warming up)?\."
        rf"(?: {NAME} needs the least memory: {NUMBER} MB\.)?",
        cost,
    ),
    (rf"{NAME} reaches {NUMBER} %±? {SPAN} of the machine's limit, \S+ \S+ a batch\.", reaches),
    (
        rf"{NAME} is faster than the machine's limit, \S+ \S+ a batch: the machine's rates were measured too low\.",
        lambda truth, name: name == truth.best and truth.verified[name].limit_share_low > 1,
    ),
    (rf"The price of flexibility: {NAME} takes {NUMBER} times {SPAN} as long as {NAME}\.", gap),
    (rf"No price of flexibility is seen between {NAME} and {NAME}\.", no_gap),
    (
        rf"No price of flexibility is seen: {NAME} is itself the best row\.",
        lambda truth, name: no_gap(truth, name, name),
    ),
    (rf"{NAME} wins back {NUMBER} %±? {SPAN} of that with the same program\.", recovered),
    (
        rf"{NAME} (wins nothing|is not seen to win anything) back: it takes {NUMBER} times {SPAN} as long as {NAME}\.",
        nothing_recovered,
    ),
    (rf"{NAME} compiles {TIME} longer than {NAME} and has made up for it after {NUMBER} {SPAN} batches\.", pays),
    (r"(.+?) computes? something else and (?:is|are) not compared\.", wrong),
    (r"(.+?) (?:is|are) faster than this machine can be and (?:is|are) not compared\.", above),
    (r"(.+?) (?:was|were) not steady while sampled: do not trust the time\.", unsteady),
    (r"(\d+) of (\d+) verified rows had one launch: .*\.", once),
    (r"The machine was busy while (\d+) of (\d+) verified rows were measured\.", busy),
]


@settings(deadline=None, max_examples=200)
@given(rows(), st.sampled_from([None, 1e10, 1e13]))
def test_every_sentence_is_true_of_the_rows(made, rate):
    limits = [make_limit(flops_per_s=rate, bytes_per_s=1e12)] if rate else []
    contents = contents_of(*made, others=limits)
    (group,) = analyse([contents]).groups
    truth = Truth(made, contents)
    for statement in group.summary:
        assert check(truth, statement.text) is True, statement
    firsts = [one.kind for one in group.summary if one.kind in ("none", "only", "fastest", "level")]
    assert len(firsts) == 1
    spoken = [one.about[0].system for one in group.summary if one.kind in ("gap", "no gap")]
    assert len(spoken) == sum(truth.is_eager_fine(name) for name in truth.verified)


@pytest.mark.parametrize(
    "text",
    [
        "toy/stack/eager is the fastest of 2 verified rows: 1.00 s [1.00, 1.00] a batch. "
        "The next, toy/fine/eager, takes 1.01 times [1.01, 1.01] as long.",
        "toy/fine/eager is the only verified row: 1.01 s [1.01, 1.01] a batch.",
        "The price of flexibility: toy/fine/eager takes 1.01 times [1.01, 1.01] as long as toy/stack/eager.",
        "toy/stack/eager computes something else and is not compared.",
    ],
)
def test_the_patterns_of_this_test_recognise_a_false_sentence(text):
    made = [MadeUpRow("toy/fine/eager", 1.01), MadeUpRow("toy/stack/eager", 1.0)]
    assert check(Truth(made, contents_of(*made)), text) is False


def kinds(*made, others=()):
    (group,) = analyse([contents_of(*made, others=others)]).groups
    return [one.kind for one in group.summary]


def test_a_row_is_called_the_fastest_only_if_every_other_is_slower():
    clear = [MadeUpRow("toy/stack/eager", 1.0), MadeUpRow("toy/cell/eager", 1.1)]
    assert kinds(*clear)[0] == "fastest"
    assert kinds(*clear, MadeUpRow("toy/packed/eager", 1.01))[0] == "level"
    # the second is far behind, but a third varies so much that it may be as fast
    assert kinds(*clear, MadeUpRow("toy/packed/eager", [0.6, 1.0, 2.0]))[0] == "level"
    assert kinds(*clear, MadeUpRow("toy/packed/eager", 0.1, verdict="wrong"))[0] == "fastest"


def test_a_summary_has_all_its_parts_in_order():
    rows = [
        MadeUpRow("toy/fine/eager", 8.0, start={"first_call_s": 8.0, "peak_host_bytes": 10}),
        MadeUpRow("toy/fine/compile", 4.0, start={"first_call_s": 44.0, "peak_host_bytes": 30}),
        MadeUpRow("toy/fine/script", 9.0),
        MadeUpRow("toy/stack/eager", 2.0, start={"first_call_s": 2.5, "peak_host_bytes": 20}),
        MadeUpRow("toy/stack/compile", 1.0, verdict="wrong"),
    ]
    assert kinds(*rows, others=[make_limit()]) == [
        "fastest", "cost", "limit", "gap", "recovered", "not recovered", "pays", "wrong",
    ]  # fmt: skip
