"""The numbers of a run from several machines: limits, speed, comparisons, means and tables know each row's node."""

import msgspec
import pytest

from analysis_runs import MadeUpRow, contents_of, make_limit
from made_up import make_case, make_run
from rnnbench.analysis.check import check_run
from rnnbench.analysis.compare import compare_runs
from rnnbench.analysis.rows import make_rows
from rnnbench.domain.run import Gpu
from rnnbench.report.document import Document
from rnnbench.report.html import page_data
from rnnbench.report.markdown import as_markdown
from rnnbench.report.terminal import show_run


def machine(**fields):
    return msgspec.structs.replace(make_run([]).machine, **fields)


def probes(seconds):
    return {"probe_before_s": seconds, "probe_after_s": seconds}


def spread_contents(**of_second):
    """Two groups on two nodes: the second may be another machine, or slower in the fixed computation."""
    probe = of_second.pop("probe", 1.0)
    rows = (
        MadeUpRow("toy/fine/eager", 2.0, phase="forward", start={"node": "a", **probes(1.0)}),
        MadeUpRow("toy/fine/eager", 2.0, start={"node": "b", **probes(probe)}),
    )
    limits = (make_limit(flops_per_s=1e10, node="a"), make_limit(flops_per_s=4e10, node="b"))
    contents = contents_of(*rows, others=limits)
    run = msgspec.structs.replace(contents.run, machines={"a": machine(), "b": machine(**of_second)})
    return msgspec.structs.replace(contents, run=run)


def finding(contents, about):
    return next(one for one in check_run(contents) if one.about == about)


def test_a_row_is_held_against_the_limit_of_its_own_machine():
    forward, train = make_rows(spread_contents())
    alone = contents_of(MadeUpRow("toy/fine/eager", 2.0), others=[make_limit(flops_per_s=4e10)])
    assert (forward.node, train.node) == ("a", "b")
    assert train.limit_s == make_rows(alone)[0].limit_s
    other = contents_of(MadeUpRow("toy/fine/eager", 2.0, phase="forward"), others=[make_limit(flops_per_s=1e10)])
    assert forward.limit_s == make_rows(other)[0].limit_s


@pytest.mark.parametrize(
    "difference", [{"cpu": "another"}, {"cores": 1}, {"cpus": 4}, {"caches": {"L2": "1M"}}], ids=str
)
def test_unlike_nodes_are_a_problem(difference):
    assert finding(spread_contents(**difference), "nodes").level == "problem"
    comparison = compare_runs(spread_contents(**difference), spread_contents(**difference))
    assert comparison.geometric_mean is None
    assert all(case.ratio == 1 for case in comparison.cases)


def test_other_gpus_and_drivers_count_where_rows_are_on_a_gpu():
    def on_cuda(driver):
        rows = [
            MadeUpRow("toy/fine/eager", 1.0, phase=phase, device="cuda", start={"node": node})
            for phase, node in (("forward", "a"), ("train", "b"))
        ]
        gpus = [Gpu(name="a GPU", driver=version, memory_mib=1) for version in ("1", driver)]
        machines = {node: machine(gpus=(gpu,)) for node, gpu in zip("ab", gpus, strict=True)}
        contents = contents_of(*rows)
        return msgspec.structs.replace(contents, run=msgspec.structs.replace(contents.run, machines=machines))

    assert finding(on_cuda("1"), "nodes").level == "ok"
    assert finding(on_cuda("2"), "nodes").level == "problem"


def test_alike_nodes_are_fine_unless_one_is_slower():
    assert finding(spread_contents(), "nodes").level == "ok"
    slower = finding(spread_contents(probe=1.2), "nodes")
    assert (slower.level, "20 % longer on b than on a" in slower.what) == ("warning", True)
    assert finding(spread_contents(probe=1.05), "nodes").level == "ok"


def test_speed_is_judged_on_each_node_by_itself():
    """Two nodes of different speed are no drift of either."""
    assert finding(spread_contents(probe=3.0), "processor speed").level == "ok"


def test_intervals_have_the_spread_of_their_own_machine():
    """Launches differ by 1 % on one node and by 30 % on the other."""

    def rows(node, factor, phase):
        launches = [[1.0] * 5, [factor] * 5, [1.0] * 5]
        executions = ("eager", "script", "trace", "compile")
        return [MadeUpRow(f"toy/fine/{one}", *launches, phase=phase, start={"node": node}) for one in executions]

    steady, unsteady = rows("a", 1.01, "forward"), rows("b", 1.3, "train")

    def widths(*some):
        return {(row.phase, row.system): row.wall_high_s / row.wall_low_s for row in make_rows(contents_of(*some))}

    together, alone = widths(*steady, *unsteady), {**widths(*steady), **widths(*unsteady)}
    assert together == pytest.approx(alone)
    assert together["forward", "toy/fine/eager"] < 1.1 < together["train", "toy/fine/eager"]


def test_a_case_is_compared_with_its_own_machine():
    """The same two kinds of machine, but the groups have changed places."""
    a, b = spread_contents(cpu="another"), spread_contents(cpu="another")
    turned = msgspec.structs.replace(b.run, machines={"a": b.run.machines["b"], "b": b.run.machines["a"]})
    comparison = compare_runs(a, msgspec.structs.replace(b, run=turned))
    assert {case.reason for case in comparison.cases} == {"machine differ"}


def test_tables_the_page_and_the_markdown_say_where_a_group_was_timed():
    contents = spread_contents(cpu="another")
    text = show_run(contents, make_rows(contents))
    assert "node         b: another, 2 cores" in text
    assert text.count("   on a") == text.count("   on b") == 1
    document = Document(["run"], [contents])
    assert "b: another, 2 cores" in page_data(document, [])
    assert ", on b.**" in as_markdown(document, []).decode()


def test_machines_of_old_runs_are_the_one_they_have():
    run = make_run([make_case()])
    assert run.machine_of("") is run.machine
