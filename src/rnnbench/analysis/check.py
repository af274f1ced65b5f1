"""Whether a run is fit to be published: what a reader would object to, and what to do about it.

A few bad rows in a large run are a warning: its tables mark them. More than one in ten is a problem, since then
the machine or the method is the cause, not the row.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from rnnbench.analysis.limit import BUSY_TOLERANCE, TOLERANCE
from rnnbench.analysis.nodes import APART as APART_NODES
from rnnbench.analysis.nodes import slowest_over_fastest, timed_places, unlike_nodes
from rnnbench.analysis.stability import WIDE, RunQuality, can_judge_rounds, odd_round, probe_change
from rnnbench.analysis.steadiness import DRIFT, within_launches
from rnnbench.domain.noise import MOST_LOAD, clocks_changed
from rnnbench.store import Contents

LAUNCHES = 3  # fewer say too little about how processes differ
BUSY = 0.25  # load per processor when the run began
TOLERATED = 0.1  # share of the rows
APART = 0.01  # relative difference of the two clocks

Level = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one check."""

    about: str
    level: Level
    what: str
    advice: str = ""
    rows: tuple[str, ...] = ()


def check_run(contents: Contents) -> list[Finding]:
    """The results of all checks, in the order of CHECKS."""
    quality = RunQuality(contents)
    return [check(quality) for check in CHECKS]


def is_fit(findings: Iterable[Finding]) -> bool:
    return all(finding.level != "problem" for finding in findings)


def _complete(quality: RunQuality) -> Finding:
    launches = quality.run.method.launches
    lacking = [result for result in quality.results if len(result.launches) < launches and not result.failure]
    damaged = quality.contents.damaged
    if damaged:
        return Finding(
            about="completeness",
            level="problem",
            what=f"{len(damaged)} lines of launches.jsonl cannot be read",
            advice="restore the folder from a copy, or measure again",
        )
    return _of_rows(
        "completeness",
        [result.case.key for result in lacking],
        len(quality.results),
        "lack launches",
        "resume it: rnnbench run --resume RUN",
        tolerated=0,
    )


def _verified(quality: RunQuality) -> Finding:
    statuses = [(result.case.key, result.status_and_reason[0]) for result in quality.results if result.measured]
    return _of_rows(
        "verification",
        [key for key, status in statuses if status == "unverified"],
        len(statuses),
        "are unverified",
        "verify them: run without --no-verify, or see why in `rnnbench show`",
        tolerated=0,
    )


def _full_size(quality: RunQuality) -> Finding:
    """The small version that was verified is not the program that was timed: that one has to be checked as well."""
    unchecked = [row.key for row in quality.timed_rows if not row.checked]
    return _of_rows(
        "full size",
        unchecked,
        len(quality.timed_rows),
        "were not checked at full size: only a small version of the timed program was verified, if any",
        "measure again with a current rnnbench, without --no-verify",
        tolerated=0 if quality.run.method.verify else 1,
    )


def _limit(quality: RunQuality) -> Finding:
    return _of_rows(
        "limit",
        [row.key for row in quality.timed_rows if row.above_limit],
        len(quality.timed_rows),
        f"are faster than the machine's limit by more than {100 * (TOLERANCE - 1):.0f} % "
        f"({100 * (BUSY_TOLERANCE - 1):.0f} % where its rates were measured on a busy machine)",
        "the clock stopped too early, or the work was not done: do not trust these rows",
        tolerated=0,
    )


def _wrong(quality: RunQuality) -> Finding:
    statuses = [(result.case.key, result.status_and_reason[0]) for result in quality.results]
    broken = [key for key, status in statuses if status in ("wrong", "failed", "timeout")]
    if broken and len(broken) == len(statuses):
        return Finding(
            about="failures",
            level="problem",
            what=f"all {len(broken)} rows are wrong, failed or timed out: nothing is left to compare",
            advice="look for one cause: rnnbench show RUN --wide has their reasons",
            rows=tuple(broken),
        )
    return _of_rows(
        "failures",
        broken,
        len(statuses),
        "are wrong, failed or timed out",
        "they are results and stay in the tables; if the machine was the cause: "
        "rnnbench run --resume RUN --retry-failed",
        tolerated=1,
    )


def _launches(quality: RunQuality) -> Finding:
    few = [row.key for row in quality.timed_rows if len(row.launches) < LAUNCHES]
    return _of_rows(
        "launches",
        few,
        len(quality.timed_rows),
        f"have fewer than {LAUNCHES} launches",
        "one process may be unusually fast or slow: measure with --effort standard, or --launches 3 or more",
        tolerated=0,
    )


def _quiet(quality: RunQuality) -> Finding:
    noisy = quality.noisy_rows
    # Of a GPU's host only a few processors are needed, and they can be chosen: repeating seldom helps there.
    unwatched = [one for row in noisy for one in row.launches if one.case.device == "cuda" and one.quiet is None]
    return _of_rows(
        "busy launches",
        [row.key for row in noisy],
        len(quality.timed_rows),
        f"were timed while the machine's speed changed (marked ~); {quality.set_aside} launches do not count for it",
        "measure again with --threads 1 or 2: rows on a GPU are then timed on quiet processors only"
        if unwatched
        else "stop other work and give these more launches: rnnbench run --resume RUN --launches 8",
    )


def _narrow(quality: RunQuality) -> Finding:
    wide = quality.wide_rows
    widest = max((row.half_width for row in quality.timed_rows), default=0.0)
    marked = sum(row.uncertain for row in quality.timed_rows)
    lacking_launches = sum(len(row.launches) < 2 or row.launches_differ for row in wide)
    advice = (
        "launches are few or differ more than samples do: make more of them, run --resume RUN --launches 8"
        if 2 * lacking_launches >= len(wide)
        else "samples vary: use longer sampling, --effort thorough"
    )
    return _of_rows(
        "intervals",
        [row.key for row in wide],
        len(quality.timed_rows),
        f"have an interval wider than ±{100 * WIDE:g} % (the widest: ±{100 * widest:.1f} %; "
        f"{marked} are over ±20 % and marked ±)",
        advice,
    )


def _steady(quality: RunQuality) -> Finding:
    return _of_rows(
        "steadiness",
        [row.key for row in quality.timed_rows if not row.steady],
        len(quality.timed_rows),
        "were not steady: still falling when sampling began, or drifting by much (marked not steady)",
        "their times are not those of a warm program: --effort thorough warms up longer, or quiet the machine",
    )


def _drift(quality: RunQuality) -> Finding:
    verdicts = [(row.key, within_launches(row.launches)) for row in quality.timed_rows]
    faster = [key for key, verdict in verdicts if verdict == "faster"]
    slower = [key for key, verdict in verdicts if verdict == "slower"]
    advice = []
    if faster:
        advice.append("those that got faster were not warm yet: --effort thorough warms up longer")
    if slower:
        advice.append("something slowed those that got slower (heat, memory, other work): let the machine cool")
    return _of_rows(
        "drift in launches",
        faster + slower,
        len(quality.timed_rows),
        f"changed by over {100 * DRIFT:g} % while they were sampled ({len(faster)} faster, {len(slower)} slower)",
        "; ".join(advice),
    )


def _rounds(quality: RunQuality) -> Finding:
    found = {node: odd for node, rows in quality.rows_by_node.items() if (odd := odd_round(rows)) is not None}
    if not found:
        judged = any(can_judge_rounds(rows) for rows in quality.rows_by_node.values())
        what = "no round was faster or slower as a whole" if judged else "not judged: too few rows or rounds"
        return Finding(about="drift over rounds", level="ok", what=what)
    node = max(found, key=lambda one: abs(math.log(found[one].ratio.estimate)))
    odd = found[node]
    return Finding(
        about="drift over rounds",
        level="problem",
        what=f"{_on(node)}round {odd.number + 1} of {odd.rounds} was {odd.verdict} as a whole: "
        f"{odd.ratio.estimate:.3f} times [{odd.ratio.low:.3f}, {odd.ratio.high:.3f}] as long as the others",
        advice="the machine changed during the run (heat, clock, other work): fix its clock and measure again",
    )


def _speed(quality: RunQuality) -> Finding:
    speeds = {node: speed for node, probes in quality.probes.items() if (speed := probe_change(probes)) is not None}
    threshold = quality.run.method.noise_threshold
    if not speeds:
        what = "not known: the fixed computation before and after launches was not timed"
        return Finding(about="processor speed", level="warning", what=what, advice="measure with a current rnnbench")
    node, speed = max(speeds.items(), key=lambda item: item[1].spread)
    spread = f"{100 * speed.spread:.0f} % longer"
    what = f"{_on(node)}a fixed computation took {spread} in the slowest tenth of the launches than in the fastest"
    if speed.spread <= threshold:
        return Finding(about="processor speed", level="ok", what=what)
    return Finding(
        about="processor speed",
        level="problem",
        what=f"{what}, and changed by {100 * speed.trend:+.0f} % from the first to the last third",
        advice="heat, a changing clock or other work: set a fixed frequency (for example cpupower frequency-set -g "
        "performance), cool the machine, and measure again",
    )


def _gpu_clock(quality: RunQuality) -> Finding:
    states = [state for row in quality.timed_rows for launch in row.launches if (state := launch.gpu_after)]
    if not states:
        return Finding(about="GPU clock", level="ok", what="no row was timed on a GPU that reports its clock")
    threshold = quality.run.method.noise_threshold
    moved = [row.key for row in quality.timed_rows if any(clocks_changed(launch, threshold) for launch in row.launches)]
    clocks = [state.sm_mhz for state in states if state.sm_mhz]
    slowed = sorted({reason for state in states for reason in state.slowed_by})
    seen = f" (it was {min(clocks):,} to {max(clocks):,} MHz)" if clocks else ""
    return _of_rows(
        "GPU clock",
        moved,
        len(quality.timed_rows),
        f"had a different GPU clock after their samples than before{seen}",
        f"slowed by {', '.join(slowed) or 'an unknown cause'}: fix the clock (nvidia-smi -lgc) and measure again",
    )


def _two_clocks(quality: RunQuality) -> Finding:
    """Block times by the device's events and by the host's clock, which waits after a single batch."""
    shares = {
        row.key: max(abs(by_device / by_host - 1) for by_device, by_host in timed)
        for row in quality.timed_rows
        if (timed := [(by_device, each.seconds) for each in row.launches if (by_device := each.device_seconds)])
    }
    if not shares or quality.run.method.timing == "latency":
        return Finding(about="two clocks", level="ok", what="no blocks were timed by a device's own clock")
    return _of_rows(
        "two clocks",
        [key for key, share in shares.items() if share > APART],
        len(shares),
        f"differ by over {100 * APART:g} % between the device's events and the host's clock "
        f"(the largest difference: {100 * max(shares.values()):.2f} %)",
        "the clock stopped too early, or waited for something else: do not trust these rows",
        tolerated=0,
    )


def _load(quality: RunQuality) -> Finding:
    timed_on = {node for node, _ in timed_places(quality.contents.records)} or {""}
    machines = {node: quality.run.machine_of(node) for node in sorted(timed_on)}
    loads = {node: share for node, machine in machines.items() if (share := machine.load_share) is not None}
    if not loads:
        return Finding(about="other load", level="ok", what="not known on this system")
    node = max(loads, key=lambda one: loads[one])
    share, machine = loads[node], machines[node]
    what = f"{_on(node)}load {machine.load:.2f} on {machine.cpus} processors when the run began"
    level: Level = "ok" if share <= BUSY else "warning" if share <= MOST_LOAD else "problem"
    advice = "" if level == "ok" else "stop other work before a run"
    return Finding(about="other load", level=level, what=what, advice=advice)


def _nodes(quality: RunQuality) -> Finding:
    """Rows of a group are from one node. But a table of several groups invites a reader to compare them."""
    places = timed_places(quality.contents.records)
    nodes = sorted({node for node, _ in places})
    if len(nodes) < 2:
        return Finding(about="nodes", level="ok", what="all rows are from one machine")
    if unlike := unlike_nodes(quality.run, places):
        return Finding(
            about="nodes",
            level="problem",
            what=f"the nodes are unlike machines ({unlike})",
            advice="compare rows of one group only, or choose nodes of one kind: rnnbench run … --on slurm -- "
            "--constraint=KIND",
        )
    apart = slowest_over_fastest(quality.probes)
    if apart and apart[2] > 1 + APART_NODES:
        slowest, fastest, times = apart
        return Finding(
            about="nodes",
            level="warning",
            what=f"a fixed computation took {100 * (times - 1):.0f} % longer on {slowest} than on {fastest}",
            advice="compare rows of one group only: other groups may be from the faster node",
        )
    return Finding(about="nodes", level="ok", what=f"{len(nodes)} nodes, all alike")


def _on(node: str) -> str:
    return f"on {node}, " if node else ""


def _source(quality: RunQuality) -> Finding:
    tool = quality.run.tool
    if tool.revision.endswith("+"):
        return Finding(
            about="source",
            level="warning",
            what=f"measured with a checkout that has uncommitted changes ({tool.version} {tool.revision})",
            advice="commit first: others should be able to get the same code",
        )
    return Finding(about="source", level="ok", what=f"rnnbench {tool.version} {tool.revision}".rstrip())


CHECKS: tuple[Callable[[RunQuality], Finding], ...] = (
    _complete,
    _verified,
    _full_size,
    _wrong,
    _limit,
    _launches,
    _quiet,
    _narrow,
    _steady,
    _drift,
    _rounds,
    _speed,
    _gpu_clock,
    _two_clocks,
    _load,
    _nodes,
    _source,
)


def _of_rows(
    about: str, bad: Sequence[str], total: int, what: str, advice: str, *, tolerated: float = TOLERATED
) -> Finding:
    """A finding about some of the rows. Its level depends on how many they are."""
    level: Level = "ok" if not bad else "warning" if len(bad) <= tolerated * total else "problem"
    text = f"{len(bad)} of {total} rows {what}"
    return Finding(about=about, level=level, what=text, advice=advice if bad else "", rows=tuple(bad))
