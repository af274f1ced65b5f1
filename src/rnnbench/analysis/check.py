"""Whether a run is fit to be published: what a reader would object to, and what to do about each.

A few bad rows in a large run are marked in its tables and are a warning. More than one in ten is a problem:
then it is the machine or the method, not the row.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from rnnbench.analysis.stability import DRIFT, Evidence, can_judge_rounds, odd_round, probe_change, within_launches
from rnnbench.domain.result import clocks_changed
from rnnbench.store import Contents

LAUNCHES = 3  # fewer say too little of how processes differ
WIDE = 0.05  # half of the interval, as a share of the time
BUSY = 0.25  # of the processors, by the load when the run began
TOLERATED = 0.1  # share of the rows
APART = 0.01  # between the two clocks

Level = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing looked at."""

    about: str
    level: Level
    what: str
    advice: str = ""
    rows: tuple[str, ...] = ()


def check_run(contents: Contents) -> list[Finding]:
    """Everything that was looked at, in the order of CHECKS."""
    evidence = Evidence(contents)
    return [check(evidence) for check in CHECKS]


def is_fit(findings: Iterable[Finding]) -> bool:
    return all(finding.level != "problem" for finding in findings)


def _complete(evidence: Evidence) -> Finding:
    lacking = [case for case in evidence.all if len(case.launches) < evidence.run.method.launches and not case.failure]
    damaged = evidence.contents.damaged
    if damaged:
        return Finding(
            about="completeness",
            level="problem",
            what=f"{len(damaged)} lines of launches.jsonl cannot be read",
            advice="restore the folder from a copy, or measure again",
        )
    return _of_rows(
        "completeness",
        [case.case.key for case in lacking],
        len(evidence.all),
        "lack launches",
        "go on with: rnnbench run --resume RUN",
        tolerated=0,
    )


def _verified(evidence: Evidence) -> Finding:
    statuses = [(case.case.key, case.status_and_reason[0]) for case in evidence.all if case.measured]
    return _of_rows(
        "verification",
        [key for key, status in statuses if status == "unverified"],
        len(statuses),
        "are unverified",
        "verify them: run without --no-verify, or see why in `rnnbench show`",
        tolerated=0,
    )


def _wrong(evidence: Evidence) -> Finding:
    statuses = [(case.case.key, case.status_and_reason[0]) for case in evidence.all]
    broken = [key for key, status in statuses if status in ("wrong", "failed", "timeout")]
    return _of_rows(
        "failures",
        broken,
        len(statuses),
        "are wrong, failed or out of time",
        "they are results and stay in the tables; where the machine was at fault: "
        "rnnbench run --resume RUN --retry-failed",
        tolerated=1,
    )


def _launches(evidence: Evidence) -> Finding:
    few = [one.key for one in evidence.measured if len(one.launches) < LAUNCHES]
    return _of_rows(
        "launches",
        few,
        len(evidence.measured),
        f"have fewer than {LAUNCHES} launches",
        "one process may be lucky: measure with --effort standard, or --launches 3 or more",
        tolerated=0,
    )


def _quiet(evidence: Evidence) -> Finding:
    noisy = [one.key for one in evidence.measured if any(launch.noisy for launch in one.launches)]
    return _of_rows(
        "busy launches",
        noisy,
        len(evidence.measured),
        "were timed while the machine's speed moved (marked ~)",
        "stop other work and measure these again; standard effort repeats such launches by itself",
    )


def _narrow(evidence: Evidence) -> Finding:
    wide = [one for one in evidence.measured if one.half_width > WIDE]
    widest = max((one.half_width for one in evidence.measured), default=0.0)
    apart = sum(one.launches_differ for one in wide)
    cause = (
        "launches differ more than samples do: more of them, --launches 8"
        if 2 * apart >= len(wide)
        else "samples vary: longer sampling, --effort thorough"
    )
    return _of_rows(
        "intervals",
        [one.key for one in wide],
        len(evidence.measured),
        f"are known no better than ±{100 * WIDE:g} % (the widest: ±{100 * widest:.1f} %)",
        cause,
    )


def _steady(evidence: Evidence) -> Finding:
    found = [(one, within_launches(one.launches)) for one in evidence.measured]
    faster = [one.key for one, verdict in found if verdict == "faster"]
    slower = [one.key for one, verdict in found if verdict == "slower"]
    advice = []
    if faster:
        advice.append("those that got faster were not warm yet: --effort thorough warms up longer")
    if slower:
        advice.append("something slowed those that got slower (heat, memory, other work): let the machine cool")
    return _of_rows(
        "drift in launches",
        faster + slower,
        len(evidence.measured),
        f"still changed by over {100 * DRIFT:g} % while they were sampled ({len(faster)} faster, {len(slower)} slower)",
        "; ".join(advice),
    )


def _rounds(evidence: Evidence) -> Finding:
    rows = [one.launches for one in evidence.measured]
    odd = odd_round(rows)
    if odd is None:
        several = can_judge_rounds(rows)
        what = "no round was faster or slower as a whole" if several else "not judged: too few rows or rounds"
        return Finding(about="drift over rounds", level="ok", what=what)
    return Finding(
        about="drift over rounds",
        level="problem",
        what=f"round {odd.number + 1} of {odd.rounds} was {odd.verdict} as a whole: {odd.ratio.estimate:.3f} times "
        f"[{odd.ratio.low:.3f}, {odd.ratio.high:.3f}] as long as the others",
        advice="the machine changed during the run (heat, clock, other work): fix its clock and measure again",
    )


def _speed(evidence: Evidence) -> Finding:
    speed = probe_change(evidence.probes)
    threshold = evidence.run.method.noise_threshold
    if speed is None:
        what = "not known: the fixed computation beside the launches was not timed"
        return Finding(about="processor speed", level="warning", what=what, advice="measure with a current rnnbench")
    longer = f"{100 * speed.spread:.0f} % longer"
    what = f"in the slowest tenth of launches a fixed computation took {longer} than in the fastest"
    if speed.spread <= threshold:
        return Finding(about="processor speed", level="ok", what=what)
    return Finding(
        about="processor speed",
        level="problem",
        what=f"{what}, and {100 * speed.trend:+.0f} % from the first to the last third",
        advice="heat, a changing clock or other work: set a fixed frequency (for example cpupower frequency-set -g "
        "performance), give the machine air, and measure again",
    )


def _gpu_clock(evidence: Evidence) -> Finding:
    states = [state for one in evidence.measured for launch in one.launches if (state := launch.gpu_after)]
    if not states:
        return Finding(about="GPU clock", level="ok", what="no row was timed on a GPU that tells its clock")
    threshold = evidence.run.method.noise_threshold
    moved = [one.key for one in evidence.measured if any(clocks_changed(launch, threshold) for launch in one.launches)]
    clocks = [state.sm_mhz for state in states if state.sm_mhz]
    slowed = sorted({reason for state in states for reason in state.slowed_by})
    seen = f" (it was {min(clocks):,} to {max(clocks):,} MHz)" if clocks else ""
    return _of_rows(
        "GPU clock",
        moved,
        len(evidence.measured),
        f"had another clock after their samples than before{seen}",
        f"slowed by {', '.join(slowed) or 'what it did not tell'}: fix the clock (nvidia-smi -lgc) and measure again",
    )


def _two_clocks(evidence: Evidence) -> Finding:
    """Blocks by the device's events beside the host's clock. Single batches may differ: the wait is part of them."""
    shares = {
        one.key: max(abs(by_device / by_host - 1) for by_device, by_host in timed)
        for one in evidence.measured
        if (timed := [(by_device, each.seconds) for each in one.launches if (by_device := each.device_seconds)])
    }
    if not shares or evidence.run.method.timing == "latency":
        return Finding(about="two clocks", level="ok", what="no blocks were timed by a device's own clock")
    return _of_rows(
        "two clocks",
        [key for key, share in shares.items() if share > APART],
        len(shares),
        f"took another time by the device's events than by the host's clock, by over {100 * APART:g} % "
        f"(the most: {100 * max(shares.values()):.2f} %)",
        "something waits that should not, or does not wait that should: do not trust these rows",
        tolerated=0,
    )


def _load(evidence: Evidence) -> Finding:
    machine = evidence.run.machine
    if machine.load is None:
        return Finding(about="other load", level="ok", what="not known on this system")
    share = machine.load / machine.cpus
    what = f"load {machine.load:.2f} on {machine.cpus} processors when the run began"
    level: Level = "ok" if share <= BUSY else "warning" if share <= 1 else "problem"
    advice = "" if level == "ok" else "stop other work before a run"
    return Finding(about="other load", level=level, what=what, advice=advice)


def _source(evidence: Evidence) -> Finding:
    tool = evidence.run.tool
    if tool.revision.endswith("+"):
        return Finding(
            about="source",
            level="warning",
            what=f"made by a checkout with changed files ({tool.version} {tool.revision})",
            advice="commit first: others should be able to get the same code",
        )
    return Finding(about="source", level="ok", what=f"rnnbench {tool.version} {tool.revision}".rstrip())


CHECKS: tuple[Callable[[Evidence], Finding], ...] = (
    _complete,
    _verified,
    _wrong,
    _launches,
    _quiet,
    _narrow,
    _steady,
    _rounds,
    _speed,
    _gpu_clock,
    _two_clocks,
    _load,
    _source,
)


def _of_rows(
    about: str, bad: Sequence[str], total: int, what: str, advice: str, *, tolerated: float = TOLERATED
) -> Finding:
    """A finding about some rows: how bad depends on how many they are."""
    level: Level = "ok" if not bad else "warning" if len(bad) <= tolerated * total else "problem"
    text = f"{len(bad)} of {total} rows {what}"
    return Finding(about=about, level=level, what=text, advice=advice if bad else "", rows=tuple(bad))
