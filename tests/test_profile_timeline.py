"""Timelines of operations: which of them count, how long any of them ran, and how they are read from traces."""

import gzip
import json

import pytest

from rnnbench_worker.profile import summary
from rnnbench_worker.shared.xla import device_operation, host_operation, xla_timeline
from rnnbench_worker.timeline import (
    Operation,
    Timeline,
    by_name,
    end_to_end,
    leaves,
    operation,
    read_chrome,
    union_seconds,
)


def test_only_what_calls_nothing_else_counts():
    inner = [Operation("mm", "0", 1.0, 2.0), Operation("t", "0", 4.0, 1.0)]
    other_thread = Operation("copy", "1", 1.5, 1.0)
    after = Operation("add", "0", 10.0, 1.0)
    found = leaves([Operation("linear", "0", 0.0, 10.0), *inner, other_thread, after])
    assert sorted(found) == sorted([*inner, other_thread, after])
    assert leaves([]) == []


def test_who_calls_only_helpers_is_one_operation_with_them():
    product = Operation("mm", "0", 1.0, 5.0)
    inside = [Operation("view", "0", 2.0, 1.0), Operation("alloc", "0", 2.5, 0.2)]
    alone = Operation("view", "0", 7.0, 1.0)
    linear = Operation("linear", "0", 0.0, 9.0)
    assert leaves([linear, product, *inside, alone], {"view", "alloc"}) == [product, alone]
    assert leaves([linear, product, Operation("add", "0", 2.0, 1.0)], whole={"mm"}) == [product]
    # If the product called another operator, that operator would count.
    assert Operation("add", "0", 2.0, 1.0) in leaves([product, Operation("add", "0", 2.0, 1.0)], {"view"})


def test_what_runs_at_the_same_time_is_counted_once():
    together = [Operation("a", "0", 0.0, 2.0), Operation("b", "1", 1.0, 2.0), Operation("c", "0", 5.0, 1.0)]
    assert union_seconds(together) == pytest.approx(4.0)
    assert union_seconds([Operation("a", "0", 0.0, 5.0), Operation("b", "1", 1.0, 1.0)]) == pytest.approx(5.0)
    assert union_seconds([]) == 0.0


def test_the_longest_stand_first():
    found = by_name([Operation("a", "0", 0, 1.0), Operation("b", "0", 1, 5.0), Operation("a", "0", 6, 1.0)])
    assert found == [["b", 1, 5.0], ["a", 2, 2.0]]


def test_those_that_run_together_share_the_time_evenly():
    """A product runs on other threads, overlapping with two short operators; nothing runs in the last second."""
    together = [
        Operation("mm", "0", 0.0, 6.0),
        Operation("tanh", "1", 1.0, 2.0),
        Operation("tanh", "1", 4.0, 1.0),
        Operation("copy", "2", 4.0, 1.0),
        Operation("view", "2", 5.0, 0.0),
    ]
    found = by_name(together)
    assert [(name, count) for name, count, _ in found] == [("mm", 1), ("tanh", 2), ("copy", 1), ("view", 1)]
    assert [seconds for *_, seconds in found] == pytest.approx([3 + 1 + 1 / 3, 1 + 1 / 3, 1 / 3, 0.0])
    assert sum(seconds for *_, seconds in found) == pytest.approx(union_seconds(together))
    assert by_name([]) == []


def test_totals_become_operations_one_after_the_other():
    operations = end_to_end([("Dot", 2, 3.0), ("Copy", 1, 1.0)])
    assert len(leaves(operations)) == 3
    assert union_seconds(operations) == pytest.approx(4.0)


def test_operations_too_short_for_the_clock_hide_no_others():
    operations = end_to_end([("View", 3, 0.0), ("Dot", 2, 3.0), ("View", 1, 0.0)])
    assert by_name(leaves(operations)) == [["Dot", 2, 3.0], ["View", 4, 0.0]]


@pytest.mark.parametrize(("plain", "told"), [(1.5, 1.5), (4.0, 2.0)])
def test_a_batch_that_was_faster_under_the_profiler_was_disturbed_without_it(plain, told):
    watched = Timeline(host=[Operation("mm", "0", 0.0, 3.0)], device=[], batches=2, file="")
    found = summary(watched, wall=plain, host=plain, profiled=4.0)
    assert (found["wall_s"], found["host_s"], found["profiled_s"]) == (told, told, 2.0)


TRACE = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
    {"ph": "M", "pid": 2, "name": "process_name", "args": {"name": "/device:GPU:0"}},
    {"ph": "M", "pid": 2, "tid": 7, "name": "thread_name", "args": {"name": "Stream #7(Compute)"}},
    {"ph": "M", "pid": 2, "tid": 8, "name": "thread_name", "args": {"name": "XLA Ops"}},
    {"ph": "X", "pid": 1, "tid": 5, "name": "PjitFunction(step)", "ts": 0, "dur": 100},
    {"ph": "X", "pid": 1, "tid": 5, "name": "dot.12", "ts": 1, "dur": 10, "args": {"hlo_op": "dot.12"}},
    {"ph": "X", "pid": 1, "tid": 5, "name": "PjRtCpuClient::Compile", "ts": 2, "dur": 3},
    {
        "ph": "X",
        "pid": 1,
        "tid": 6,
        "name": "KernelAndDeviceFunc::Run",
        "ts": 2,
        "dur": 3,
        "args": {"kernel_of": "Tanh"},
    },
    {"ph": "X", "pid": 1, "tid": 6, "name": "__inference_f_1:__inference_f_1", "ts": 2, "dur": 3},
    {"ph": "X", "pid": 1, "tid": 6, "name": "a/b/MatMul_1:MatMul", "ts": 2, "dur": 3},
    {"ph": "X", "pid": 2, "tid": 7, "name": "loop_add_fusion_3", "ts": 3, "dur": 4},
    {"ph": "X", "pid": 2, "tid": 8, "name": "loop_add_fusion_3", "ts": 3, "dur": 4},
    {"ph": "C", "pid": 1, "name": "a counter"},
]


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_trace_is_read_with_the_names_of_processes_and_threads(tmp_path, name, wrapped):
    path = tmp_path / name
    text = json.dumps({"traceEvents": TRACE} if wrapped else TRACE)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    events = list(read_chrome(str(path)))
    assert [event["process"] for event in events] == ["/host:CPU"] * 6 + ["/device:GPU:0"] * 2
    assert operation(events[1]) == Operation("dot.12", "1/5", 1e-6, 1e-5)


def test_of_xlas_traces_operators_and_the_kernels_of_streams_are_taken(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(TRACE))
    events = list(read_chrome(str(path)))
    assert [one.name for one in map(host_operation, events) if one] == ["dot", "Tanh", "MatMul"]
    assert [one.name for one in map(device_operation, events) if one] == ["loop_add_fusion"]


def test_an_operator_handed_to_other_threads_runs_until_its_mark(tmp_path):
    """On the CPU in XLA, the event of `dot.1` ends when other threads have received the work, not when it is done."""
    operators = [("while.9", 0, 2, 5), ("dot.1", 2, 5, 5), ("tanh.3", 10, 5, 5), ("dot.1", 60, 5, 5)]
    marks = [
        ("end: while.9", 110, 1, 6),
        ("end: dot.1", 50, 1, 6),
        ("end: tanh.3", 14, 1, 5),
        ("end: dot.1", 100, 1, 6),
    ]
    events = [
        {"ph": "X", "pid": 1, "tid": tid, "name": name, "ts": ts, "dur": dur}
        | ({} if name.startswith("end") else {"args": {"hlo_op": name}})
        for name, ts, dur, tid in [*operators, *marks]
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([TRACE[0], *events]))
    found = leaves(xla_timeline(str(path)).host)
    assert [(name, count, round(seconds * 1e6, 1)) for name, count, seconds in by_name(found)] == [
        ("dot", 2, 48 + 40 - 2.5),
        ("tanh", 1, 2.5),
    ]
    assert union_seconds(found) == pytest.approx(88e-6)
