"""Abilities: what they must compute, that a boast is found out, and what PyTorch's systems really can do."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

import rnnbench
from made_up import make_contents, write_framework
from report_runs import case, complete, store, timed
from rnnbench.abilities import WORKLOAD, compare_arrays, try_abilities
from rnnbench.domain.ability import ABILITIES, MEANINGS, Entry
from rnnbench.known import known_entries, read_entries, update_known
from rnnbench.launch.listener import Listener
from rnnbench.manifests import manifests
from rnnbench.method import make_method
from rnnbench.reference import abilities as reference
from rnnbench.reference.abilities import TASKS, expected_arrays, is_dropout_mask, make_inputs
from rnnbench.store import read_folder

SMALL = "ce-short[batch=3,steps=4]"  # of any size: it does not matter


# --- the reference --------------------------------------------------------------------------------------


def test_every_ability_has_a_task_and_a_heading():
    assert tuple(TASKS) == ABILITIES == tuple(MEANINGS)
    assert len({heading for heading, _ in MEANINGS.values()}) == len(ABILITIES)


def test_workers_are_told_the_sizes_of_the_reference():
    sizes = (WORKLOAD.batch, WORKLOAD.steps, WORKLOAD.features, WORKLOAD.hidden, WORKLOAD.layers)
    assert sizes == (reference.BATCH, reference.STEPS, reference.WIDTH, reference.HIDDEN, 1)


@pytest.mark.parametrize("ability", [ability for ability in TASKS if ability != "double-backward"])
def test_the_reference_gradients_are_those_of_finite_differences(ability):
    inputs = make_inputs()
    doubles = {name: array.astype(np.float64) for name, array in inputs.items()}
    task = TASKS[ability]
    xs = doubles["xs"][: task.steps]

    def loss(arrays):
        computed = reference._run(task, arrays, xs)
        total = float((computed.h * arrays[task.probe][: task.steps]).sum())
        return total + (float((computed.c * arrays["probe_c"]).sum()) if task.states else 0.0)

    gradients = reference._run(task, doubles, xs).gradients
    generator = np.random.default_rng(1)
    for name, source in {**task.weights, "u": "u", "b": "b"}.items():
        direction = generator.standard_normal(doubles[source].shape)
        moved = [loss({**doubles, source: doubles[source] + step * direction}) for step in (1e-5, -1e-5)]
        along = float((gradients[name] * direction).sum())
        assert (moved[0] - moved[1]) / 2e-5 == pytest.approx(along, rel=1e-5), name


def test_the_gradient_of_a_gradient_is_that_of_finite_differences():
    inputs = {name: array.astype(np.float64) for name, array in make_inputs().items()}
    task = TASKS["double-backward"]
    xs = inputs["xs"][: task.steps]

    def size(arrays):
        return float((reference._run(task, arrays, xs).xs ** 2).sum())

    found = expected_arrays("double-backward", inputs)
    for name in "wub":
        direction = np.random.default_rng(2).standard_normal(inputs[name].shape)
        moved = [size({**inputs, name: inputs[name] + step * direction}) for step in (1e-5, -1e-5)]
        assert (moved[0] - moved[1]) / 2e-5 == pytest.approx(
            float((found[f"gradient/{name}"] * direction).sum()), rel=1e-5
        )


@pytest.mark.parametrize("ability", ["own-cell", "normalisation", "recurrent-dropout", "variable-lengths", "reset",
                                     "feedback", "attention"])  # fmt: skip
def test_a_plain_lstm_is_not_taken_for_an_ability(ability):
    """Otherwise an ability would be proved by leaving it out."""
    inputs = make_inputs()
    plain = reference._run(reference.Task(), inputs, inputs["xs"][:6].astype(np.float64))
    found = {"h": plain.h, **{f"gradient/{name}": value for name, value in plain.gradients.items()}}
    figures = {figure.quantity: figure for figure in compare_arrays(ability, inputs, found)}
    assert not figures["h"].passes


def test_a_layer_may_draw_its_own_mask_also_one_for_each_gate():
    inputs = make_inputs()
    mask = inputs["mask"]
    by_gate = np.stack([np.roll(mask, shift, axis=1) for shift in range(4)])
    for drawn in (np.roll(mask, 1, axis=0), by_gate):
        computed = expected_arrays("recurrent-dropout", {**inputs, "mask": drawn})
        assert all(figure.passes for figure in compare_arrays("recurrent-dropout", inputs, {**computed, "mask": drawn}))
        assert not any(figure.passes for figure in compare_arrays("recurrent-dropout", inputs, computed))
    same_in_all_gates = expected_arrays("recurrent-dropout", {**inputs, "mask": np.stack([mask] * 4)})
    assert same_in_all_gates["h"] == pytest.approx(expected_arrays("recurrent-dropout", inputs)["h"])


def test_a_mask_of_ones_or_one_for_all_sequences_is_no_dropout():
    mask = make_inputs()["mask"]
    assert is_dropout_mask(mask)
    for boast in (np.ones_like(mask), np.full_like(mask, 2.0), mask * 1.5, np.stack([mask[0]] * 5), mask[:, :6]):
        assert not is_dropout_mask(boast)
        (figure,) = compare_arrays("recurrent-dropout", make_inputs(), {"mask": boast})
        assert not figure.passes


# --- a framework that boasts ----------------------------------------------------------------------------

BOASTER = """
import os
import signal

import numpy as np

from rnnbench_worker.abilities import Cannot


def describe(job):
    return {"versions": {"numpy": np.__version__}, "device": "cpu", "device_name": "NumPy", "threads": job["threads"]}


def build(job, parameters):
    raise NotImplementedError


def prove(job, ability, arrays):
    from rnnbench.reference.abilities import expected_arrays

    execution = job["execution"]
    found = {name: array.astype(np.float32) for name, array in expected_arrays(ability, arrays).items()}
    if execution == "other-numbers":
        found["gradient/u"] = found["gradient/u"] * 1.01
    if execution == "no-gradient":
        del found["gradient/b"]
    if execution == "builds-again":
        found["built"] = int(ability == "other-steps")
    if execution == "fixed-steps":
        found["h"] = found["h"][:6] if "h" in found else found["gradient/b"]
    if execution == "dies" and ability == "reset":
        os.kill(os.getpid(), signal.SIGSEGV)
    if execution == "declines":
        raise Cannot("nobody has asked for it before")
    if execution == "raises":
        raise ValueError("no such thing")
    return found
"""
EXECUTIONS = (
    "honest", "other-numbers", "no-gradient", "builds-again", "fixed-steps", "dies", "declines", "raises"
)  # fmt: skip


@pytest.fixture
def tried(private_folders, offered):
    """Tries abilities of the boaster."""
    folder = write_framework(private_folders / "boaster", EXECUTIONS, BOASTER)
    offered("boaster", folder)

    def try_them(*executions, abilities=ABILITIES, **options):
        plan = rnnbench.make_plan([f"boaster/packed/{one}" for one in executions], [SMALL], device="cpu")
        return try_abilities(plan, make_method(threads=1, limit_seconds=60), Listener(), abilities, **options)

    return try_them


def verdicts(entries):
    return {(one.system.rpartition("/")[2], one.ability): (one.verdict, one.reason) for one in entries}


def test_boasts_are_found_out(tried):
    found = verdicts(tried(*EXECUTIONS))
    assert len(found) == len(EXECUTIONS) * len(ABILITIES)
    for ability in ABILITIES:
        assert found["honest", ability] == ("yes", "")
        assert found["other-numbers", ability][0] == "wrong"
        assert found["other-numbers", ability][1].startswith("gradient of u: 0.0")
        assert found["no-gradient", ability] == ("wrong", "gradient of b: not finite (tolerance 0.0001)")
        assert found["declines", ability] == ("no", "nobody has asked for it before")
        assert found["raises", ability] == ("no", "ValueError: no such thing")
        # One that dies in one ability still has the others.
        dies = ("failed", "killed by SIGSEGV during another ability") if ability == "reset" else ("yes", "")
        assert found["dies", ability] == dies
        builds = ("no", "something is built again (1)") if ability == "other-steps" else ("yes", "")
        assert found["builds-again", ability] == builds
    assert found["fixed-steps", "other-steps"] == ("wrong", "its result has the shape [6, 5, 12] instead of [9, 5, 12]")


def test_what_is_settled_is_cached_and_what_failed_is_tried_again(tried, monkeypatch):
    first = tried("honest", "dies", abilities=("reset", "feedback"))
    calls = []
    monkeypatch.setattr("rnnbench.abilities._judge", lambda event, *rest: calls.append(event.ability) or ("yes", ""))
    assert tried("honest", abilities=("reset", "feedback")) == [one for one in first if "honest" in one.system]
    assert calls == []
    tried("honest", abilities=("attention",))
    assert calls == ["attention"]
    again = verdicts(tried("dies", abilities=("reset", "feedback")))
    assert again["dies", "reset"][0] == "failed"  # it died again
    assert tried("honest", abilities=("reset",), use_cache=False)
    assert calls == ["attention", "reset"]


def test_a_framework_without_programs_is_not_tried_and_not_a_no(sabotage):
    plan = rnnbench.make_plan(["sabotage/packed/honest"], [SMALL], device="cpu")
    found = try_abilities(plan, make_method(threads=1), Listener())
    assert {one.verdict for one in found} == {"not tried"}
    assert {one.reason for one in found} == {"there are no programs for Sabotage yet"}


def test_what_cannot_run_here_is_not_tried():
    plan = rnnbench.make_plan(["pytorch/stack/cudagraph"], [SMALL], device="cpu")
    found = try_abilities(plan, make_method(threads=1), Listener())
    assert {(one.verdict, one.reason) for one in found} == {("not tried", "a CUDA graph needs a CUDA device")}


# --- the command ----------------------------------------------------------------------------------------


def test_the_command_prints_the_matrix_with_reasons(tried, call):
    answer = call("abilities", "boaster/packed/honest", "boaster/packed/builds-again", "--reasons", "--device", "cpu")
    assert answer.code == 0
    lines = {line.split()[0]: line.split()[1:] for line in answer.out.splitlines() if line.startswith("boaster/packed")}
    assert lines["boaster/packed/honest"] == ["yes"] * 10 + ["10"]
    assert "boaster/packed/builds-again: other-steps: no, something is built again (1)" in answer.out
    assert call("abilities", "boaster/packed/dies", "--ability", "reset", "--device", "cpu").code == 1


def test_entries_of_a_run_are_kept_in_its_folder(tried, call, private_folders):
    one = case("boaster/packed/builds-again", workload="ce-short", version=np.__version__)
    folder = store(private_folders / "run", complete(make_contents([one], *timed(one, 0.1))))
    assert call("abilities", "--run", str(folder)).code == 0
    kept = {entry.ability: entry for entry in read_folder(folder).abilities}
    assert tuple(kept) == ABILITIES
    assert (kept["other-steps"].verdict, kept["other-steps"].version) == ("no", np.__version__)
    assert call("abilities", "boaster/*", "--run", str(folder)).code == 2  # it has systems of its own


def test_a_run_with_a_users_interpreter_asks_for_no_version_but_for_that_interpreter(tried, call, private_folders):
    """Its version may be one that no manifest knows."""
    for version, code in ((np.__version__, 0), ("99.1", 2)):
        one = case("boaster/packed/builds-again", workload="ce-short", version=f"{version}-used")
        contents = complete(make_contents([one], *timed(one, 0.1)))
        (used,) = contents.run.environments.values()
        contents.run.environments[used.id] = msgspec.structs.replace(used, external=True, version=version)
        answer = call("abilities", "--run", str(store(private_folders / version, contents)))
        assert answer.code == code, answer.err
    assert "rnnbench env use boaster PATH" in answer.err


def test_bad_input_is_refused_with_what_is_allowed(call):
    answer = call("abilities", "--ability", "flying")
    assert answer.code == 2
    assert "'flying' is not an ability" in answer.err
    assert "own-cell, normalisation" in answer.err
    assert call("abilities", "--known", "--update").code == 2
    assert call("abilities", "--markdown").code == 2
    assert call("abilities", "nothing/*").code == 2


def test_what_is_known_is_read_again_and_replaced_by_what_is_tried(tmp_path):
    entry = Entry(
        system="toy/packed/eager", device="cpu", environment="toy-1.0", version="1.0", ability="reset", verdict="no"
    )
    other = msgspec.structs.replace(entry, ability="feedback", verdict="yes")
    (path,) = update_known([entry, other], tmp_path)
    assert path.name == "toy-1.0-cpu.json"
    update_known(
        [msgspec.structs.replace(entry, verdict="yes"), msgspec.structs.replace(other, verdict="not tried")], tmp_path
    )
    assert {one.ability: one.verdict for one in read_entries(path)} == {"reset": "yes", "feedback": "yes"}
    unknown = msgspec.structs.replace(entry, ability="flying")
    path.write_bytes(msgspec.json.encode([entry, unknown]))
    assert [one.ability for one in read_entries(path)] == ["reset"]


def test_every_entry_that_is_kept_is_about_a_system_that_exists_and_has_a_reason_unless_it_is_a_yes():
    systems = {system.name for manifest in manifests().values() for system in manifest.system}
    for entry in known_entries():
        assert entry.system in systems
        assert entry.reason or entry.verdict == "yes", entry


def test_the_page_agrees_with_what_is_known(call):
    page = Path(__file__).parent.parent / "docs" / "abilities.md"
    how = "something was tried anew: .venv/bin/rnnbench abilities --known --markdown > docs/abilities.md"
    assert page.read_text(encoding="utf-8") == call("abilities", "--known", "--markdown").out, how


# --- PyTorch --------------------------------------------------------------------------------------------

#: What is not a yes, and a word of its reason.
PYTORCH = {
    "pytorch/packed/eager": {},
    "pytorch/fine/trace": {"other-steps": ("wrong", "instead of [9, 5, 12]")},
    "pytorch/cell/script": {"own-cell": ("no", "input_size"), "normalisation": ("no", "input_size")},
    "pytorch/stack/eager": {
        "own-cell": ("no", "none of its arguments"),
        "normalisation": ("no", "none of its arguments"),
        "recurrent-dropout": ("no", "between layers"),
        "all-states": ("no", "[1, 5, 12] for 9 steps"),
        "reset": ("no", "input, hx"),
        "feedback": ("no", "input, hx"),
        "attention": ("no", "input, hx"),
    },
}


@pytest.mark.slow
@pytest.mark.torch
def test_what_pytorch_can_do_is_tried(pytorch, keep_compiled):
    plan = rnnbench.make_plan(list(PYTORCH), [SMALL], device="cpu", phases=["train"])
    entries = try_abilities(plan, make_method(threads=1, limit_seconds=100), Listener(), use_cache=False)
    for entry in entries:
        if (entry.system, entry.ability) == ("pytorch/stack/eager", "double-backward"):
            continue  # oneDNN, which not every processor has for it, gives no gradient of its gradient
        verdict, word = PYTORCH[entry.system].get(entry.ability, ("yes", ""))
        assert (entry.verdict, word in entry.reason) == (verdict, True), entry


@pytest.mark.slow
@pytest.mark.parametrize("system", ["jax/packed/jit-scan", "tensorflow/packed/graph-while", "keras-jax/layer/jit"])
def test_what_is_known_of_others_is_found_again(system, environment_of):
    environment_of(system.partition("/")[0])
    plan = rnnbench.make_plan([system], [SMALL], device="cpu", phases=["train"])
    known = {one.ability: one.verdict for one in known_entries() if (one.system, one.device) == (system, "cpu")}
    chosen = ("recurrent-dropout", "double-backward", "feedback", "other-steps")
    method = make_method(threads=1, limit_seconds=100)
    for entry in try_abilities(plan, method, Listener(), chosen, use_cache=False):
        assert entry.verdict == known[entry.ability], entry
