"""`rnnbench cell`: a user's file through every execution, errors in its author's words, and cells that deceive."""

import hashlib
from pathlib import Path

import msgspec
import pytest

import rnnbench
from made_up import make_case, make_launch, make_run, make_system
from rnnbench import own_cell, session
from rnnbench.domain.result import Verification
from rnnbench.domain.workload import OwnCell, OwnWeight, Workload, flops, parameter_count
from rnnbench.errors import UserError
from rnnbench.launch.listener import Listener
from rnnbench.own_cell import own_workload, read_arguments, read_cell, with_vocabulary
from rnnbench.report.own_cell import show_own_cell
from rnnbench.resuming import UnknownInterpreter
from rnnbench.store import Contents, create_folder
from rnnbench.verify.proofs import small_version
from systems_helpers import job_for, run_snippet

DOCS = Path(__file__).parent.parent / "docs" / "cells"
CELLS = Path(__file__).parent / "own_cells.py"
TINY = {"features": 5, "hidden": 6, "batch": 3, "steps": 4}
OPTIONS = ["--input", "5", "--hidden", "6", "--batch", "3", "--steps", "4", "--device", "cpu", "--threads", "1"]


def vocabulary_file(folder, text, name="mine.py"):
    path = folder / name
    path.write_text(text)
    return str(path)


GOOD = """
STATES = ("h",)
def parameters(width, hidden):
    return {"w": (width, hidden), "u": (hidden, hidden)}
def step(ops, weights, x, state):
    return {"h": ops.tanh(ops.matmul(x, weights["w"]) + ops.matmul(state["h"], weights["u"]))}
"""


# --- reading what the user gave ---


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.py:Cell", "cannot read nowhere.py: No such file"),
        ("Cell", "'Cell' is not a cell"),
        (str(CELLS), "own_cells.py is no cell over the vocabulary; name its class"),
    ],
)
def test_what_is_no_cell(given, message):
    with pytest.raises(UserError, match=message):
        read_cell(given)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("STATES = (", "mine.py is not Python"),
        ("STATES = ('h',)", "mine.py has no parameters and no step"),
        (f"import torch\n{GOOD}", "mine.py imports torch"),
        (GOOD.replace("ops.tanh", "ops.sinh"), r"has no attribute 'sinh' \(line 6: return"),
        (GOOD.replace('weights["u"]))', 'weights["v"]))'), r"KeyError: 'v' \(line 6"),
        (GOOD.replace('"h": ops', '"c": ops'), "a step returns {'c': "),
        (
            GOOD.replace("hidden),", "2 * hidden),").replace("hidden)}", "2 * hidden)}"),
            r"a step returns {'h': \(3, 12\)}",
        ),
    ],
)
def test_what_is_wrong_with_a_cell_over_the_vocabulary(tmp_path, text, message):
    with pytest.raises(UserError, match=message):
        with_vocabulary(read_cell(vocabulary_file(tmp_path, text)), 5, 6)


def test_arguments_of_a_class():
    assert read_arguments(["heads=4", "bias=False", "kind=soft"]) == {"heads": 4, "bias": False, "kind": "soft"}
    with pytest.raises(UserError, match="cannot read the argument 'heads'"):
        read_arguments(["heads"])


def test_a_file_named_as_a_cell_of_rnnbench_is_still_the_users_own(tmp_path):
    own = with_vocabulary(read_cell(vocabulary_file(tmp_path, GOOD, "gru.py")), 5, 6)
    workload = own_workload(own, TINY)
    assert workload.cell == "gru.py"
    assert parameter_count(workload) == (5 + 6) * 6 + 60
    plan = rnnbench.make_plan(["pytorch/*"], [workload], device="cpu", phases=["forward"])
    assert {case.system.split("/")[1] for case in plan.cases} == {"packed"}


def test_a_stored_run_is_read_without_the_file():
    own = OwnCell(
        path="/nowhere/mine.py", digest="", class_name="Cell", weights=(OwnWeight("w", (6, 11)),), products=(132, 300)
    )
    workload = own_workload(own, TINY)
    assert msgspec.json.decode(msgspec.json.encode(workload), type=Workload) == workload
    assert flops(workload, "forward") == 3 * 4 * (132 + 2 * 6 * 10)


# --- resuming ---


def stored_run(folder, path):
    content = Path(path).read_bytes()
    own = OwnCell(path=path, digest=hashlib.sha256(content).hexdigest(), weights=(OwnWeight("w", (5, 6)),))
    workload = own_workload(own, TINY)
    run = msgspec.structs.replace(make_run([]), workloads={workload.name: workload}, environments={})
    create_folder(folder, run)


def test_a_run_from_elsewhere_imports_nothing_unasked(private_folders):
    path = vocabulary_file(private_folders, GOOD)
    stored_run(private_folders / "run", path)
    with pytest.raises(UnknownInterpreter, match=r"this run would import .*mine\.py"):
        session.resume(private_folders / "run", Listener())
    Path(path).write_text(GOOD + "# changed\n")
    with pytest.raises(UserError, match=r"mine\.py has changed since this run began"):
        session.resume(private_folders / "run", Listener(), trust=True)


# --- the advice ---


def advice(launches=3, **rows):
    """About a class of which these executions took so many seconds: a negative number is a row that is wrong."""
    own = OwnCell(path="/nowhere/mine.py", digest="", class_name="Cell", weights=(OwnWeight("w", (6, 11)),))
    workloads = {"packed": own_workload(own, TINY), "stack": own_cell.vendor_workload(TINY)}
    seconds = {f"pytorch/packed/{name.replace('_', '-')}": one for name, one in rows.items()}
    seconds["pytorch/stack/eager"] = 1.0
    cases = {
        name: msgspec.structs.replace(make_case(), system=name, workload=workloads[name.split("/")[1]].name)
        for name in seconds
    }
    records = [
        make_launch(cases[name], *[abs(one)] * 3, round=k) for name, one in seconds.items() for k in range(launches)
    ]
    for name, one in seconds.items():
        small = small_version(workloads[name.split("/")[1]]).name
        proved = msgspec.structs.replace(cases[name], workload=small)
        records.append(Verification(case=proved, verdict="verified" if one > 0 else "wrong", reason="it differs"))
    run = msgspec.structs.replace(
        make_run([]),
        workloads={one.name: one for one in workloads.values()},
        proved_on={one.name: small_version(one).name for one in workloads.values()},
        systems={name: make_system(name) for name in seconds},
        cases=tuple(cases.values()),
    )
    return show_own_cell(Contents(run=run, records=tuple(records)))


def test_the_advice_says_what_was_measured():
    found = advice(eager=4.2, script=2.5, rnnfuse=2.0)
    assert found.startswith(
        "mine.py:Cell\n  train: use rnnfuse: 2.00 s a batch, 2.1 times faster than your loop; 2.0 times"
    )
    assert "2.0 times the time of torch.nn.LSTM of the same sizes" in found.replace("\n    ", " ")
    assert "keep your loop, 2.00 s a batch: nothing is seen to be faster" in advice(eager=2.0, script=2.01)


def test_what_one_launch_does_not_show_is_not_advised_but_named():
    found = advice(launches=1, eager=2.0, rnnfuse=1.5).replace("\n    ", " ")
    assert "keep your loop, 2.00 s± a batch: nothing is seen to be faster (rnnfuse 0.75× its time)" in found
    assert "2.0± times the time of torch.nn.LSTM" in found  # the loop's, which is advised, not rnnfuse's
    assert found.endswith("rnnfuse may be 1.3 times faster: --effort standard would tell")
    assert "may be" not in advice(launches=1, eager=2.0, rnnfuse=1.9)


def test_a_wrong_row_is_never_advised():
    found = advice(eager=4.0, script=-0.1, compile_cell=2.0)
    assert "use compile-cell: 2.00 s a batch, 2.0 times faster" in found
    assert "not to be used: script" in found
    assert "nothing can be advised: your own loop does not compute in float32" in advice(eager=-4.0, script=2.0)


# --- in the frameworks ---


def plan_of(cell, *systems, steps=4, **options):
    return rnnbench.plan_cell(cell, systems, input=5, hidden=6, batch=3, steps=steps, device="cpu", **options)


INSPECT = """
answer = {}
for name, arguments in job["classes"]:
    own = dict(job["workload"]["own"], class_name=name, arguments=arguments)
    try:
        found = framework.inspect_cell(dict(job, workload=dict(job["workload"], own=own)))
        answer[name] = [found["told"], found["output_width"], found["products"]]
    except Exception as error:
        answer[name] = [type(error).__name__ + ": " + str(error), 0, 0]
"""


@pytest.mark.slow
@pytest.mark.torch
def test_what_is_found_out_about_a_class(pytorch, tmp_path):
    names = ["Gated", "Projected", "WrongShape", "Fails", "NoModule", "Nobody", "Picky"]
    job = job_for("pytorch/packed/eager", "ce-short[batch=3,features=5,hidden=6]", tmp_path)
    job["workload"]["own"] = {"path": str(CELLS), "class_name": "", "arguments": {}}
    job["classes"] = [[name, {}] for name in names] + [["Gated", {"scale": 2.0}]]
    found = run_snippet(pytorch, job, INSPECT)
    assert found["Gated"] == [
        "state: its own initial_state(x); a step returns the new state, which is the output",
        6,
        [2 * 11 * 12, 3 * 2 * 11 * 12],
    ]
    assert found["Projected"][:2] == ["state: zeros, as a tensor; a step returns output and new state", 2]
    assert "a step returns [7, 12]: it must return the new state, which is like [7, 6]" in found["WrongShape"][0]
    assert found["Fails"][0].startswith("CellError: Fails: a step fails: RuntimeError")
    assert "own_cells.py, line" in found["Fails"][0]
    assert "return self.product(x) + h)" in found["Fails"][0]
    assert found["NoModule"][0].startswith("CellError: NoModule of own_cells.py is not a class of torch.nn.Module")
    assert found["Nobody"][0].startswith("CellError: own_cells.py has no class Nobody; it has Gated, Projected")
    assert "Picky(5, 6) cannot be made: TypeError" in found["Picky"][0]
    assert "heads" in found["Picky"][0]


@pytest.mark.slow
@pytest.mark.torch
def test_the_answer_for_a_new_user(pytorch, keep_compiled, call, private_folders):
    """As in the README, on tiny shapes, in an interpreter that the user names."""
    systems = ["pytorch/packed/eager", "pytorch/packed/script"]
    cell = f"{DOCS / 'my_cell.py'}:PeepholeLSTM"
    answer = call("cell", cell, *systems, *OPTIONS, "--phase", "train", "--out", "run", "--python", pytorch.python)
    assert answer.code == 0, answer.err
    assert "state: zeros, as a tuple of 2; a step returns the new state" in answer.out
    assert answer.out.count("verified") >= 3  # the loop, the script, torch.nn.LSTM
    assert "times the time of torch.nn.LSTM of the same sizes" in answer.out.replace("\n    ", " ")
    shown = call("show", "run")
    assert answer.out.startswith(shown.out)
    assert "your loop" in call("explain", "run").out
    assert call("report", "run", "--out", "report").code == 0


def with_class(plan, class_name):
    """The workload of a plan, with another class of the same file, which has the same weights."""
    (workload,) = [one for one in plan.workloads.values() if one.own]
    own = msgspec.structs.replace(workload.own, class_name=class_name)
    return own_workload(own, TINY)


@pytest.mark.slow
@pytest.mark.torch
def test_classes_that_deceive_are_wrong(pytorch, keep_compiled):
    honest = plan_of(f"{CELLS}:Gated", "pytorch/packed/script", phases="forward")
    plans = [
        rnnbench.make_plan([f"pytorch/packed/{execution}"], [with_class(honest, name)], phases="forward", device="cpu")
        for name, execution in (
            ("Gated", "script"),
            ("OtherInScript", "script"),
            ("OtherInCompile", "compile-cell"),
            ("Counting", "rnnfuse"),
            ("Random", "eager"),
        )
    ]
    found = rnnbench.verify_plan(rnnbench.join_plans(*plans), threads=1).verifications
    names = [one.case.workload.partition("own_cells.")[2].partition(",")[0] for one in found]
    assert [*zip(names, [one.verdict for one in found], strict=True)] == [
        ("Gated", "verified"),
        ("OtherInScript", "wrong"),
        ("OtherInCompile", "wrong"),
        ("Counting", "wrong"),
        ("Random", "wrong"),
    ], [one.reason for one in found]


@pytest.mark.slow
def test_a_cell_over_the_vocabulary_in_several_frameworks(environment_of, tmp_path):
    for framework in ("jax", "pytorch"):
        environment_of(framework)
    plan = plan_of(str(DOCS / "leaky.py"), "jax/packed/jit-scan", "pytorch/packed/script")
    own = tuple(case for case in plan.cases if "cell=" in case.workload)
    found = rnnbench.verify_plan(msgspec.structs.replace(plan, cases=own), threads=1).verifications
    assert [one.verdict for one in found] == ["verified"] * 4, [one.reason for one in found]


def test_rows_that_compile_for_minutes_are_left_out_unless_they_are_named(private_folders):
    path = vocabulary_file(private_folders, GOOD)
    plan = plan_of(path, steps=100)
    left = {one.case.system: one.reason for one in plan.left_out}
    assert "takes minutes to compile: name pytorch/packed/compile" in left["pytorch/packed/compile"]
    assert "pytorch/packed/eager" in {case.system for case in plan.cases}
    assert own_cell.VENDOR in {case.system for case in plan.cases}
    named = plan_of(path, "pytorch/packed/compile", steps=100)
    assert "pytorch/packed/compile" in {case.system for case in named.cases}
