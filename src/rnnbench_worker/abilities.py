"""Abilities: small programs that show what a system can do beyond the plain layer. Nothing is judged here.

A framework's folder offers `prove(job, ability, arrays)` (see `program.py`). All programs have the same form, one layer
of 12 units whose state is (h, c), and are given the same arrays by name:

    xs [steps, batch, width]; more steps than all programs but one use
    reset, inside [steps, batch, 1] of ones and zeros; lengths [batch]
    mask [batch, hidden]; memory [batch, slots, hidden]
    w, u, b of the LSTM; p, gain_x, gain_h, gain_c, b_c of other cells; head [hidden, width]; w_wide [width + hidden, …]
    probe_h, probe_inside, probe_c: the loss is the sum of outputs times probe

They return `h [steps, batch, hidden]`, `c` where it is asked for, and `gradient/…` of each weight by its name in the
step. With lengths, the last step of h has each sequence's own last state.
"""

import inspect
import os
import re

import numpy as np

import rnnbench_cells

from .loading import told

STEPS = 6
OTHER_STEPS = 9
DROPOUT_RATE = 0.5

#: The cell of an ability that is a cell of its own.
CELLS = {"own-cell": "peephole", "normalisation": "layernorm-lstm"}

#: What a step is given beside its input: one row for each step, or one for each sequence.
FLAGS = {"variable-lengths": "inside", "reset": "reset"}
EXTRAS = {"recurrent-dropout": "mask", "attention": "memory"}


class Cannot(Exception):
    """The system does not offer it. The text says what it offers instead, as read from the framework."""


def prove_abilities(job, framework, channel):
    """Sends `tried` for each of the job's abilities: the path of its arrays, or why there are none."""
    with np.load(job["inputs"], allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for ability in job["abilities"]:
        fields = {"ability": ability, "outcome": "computed"}
        try:
            found = dict(framework.prove(told(job), ability, arrays))
        except Cannot as reason:
            fields.update(outcome="cannot", reason=str(reason))
        except Exception as error:  # what a framework refuses is the answer
            fields.update(outcome="refused", reason="{}: {}".format(type(error).__name__, first_lines(error)))
        else:
            fields["note"] = found.pop("note", "")
            fields["built"] = found.pop("built", None)
            fields["path"] = os.path.join(job["arrays"], ability + ".npz")
            np.savez(fields["path"], **{name: np.asarray(value) for name, value in found.items()})
        channel.send("tried", **fields)


def first_lines(error):
    """Two lines, since some frameworks give the cause in the second; without the colours of some."""
    lines = [re.sub("\x1b\\[[0-9;]*m", "", line).strip() for line in str(error).splitlines()]
    return " … ".join(line[:200] for line in [line for line in lines if line][:2])


# --- what several frameworks use ----------------------------------------------------------------------


def steps_of(ability):
    return OTHER_STEPS if ability == "other-steps" else STEPS


def run_ability(ability, run, builds):
    """What `run(steps)` finds. For another number of steps it runs twice: `builds()` counts what the second one built,
    and is None where a framework does not tell.
    """
    if ability != "other-steps":
        return run(STEPS)
    run(STEPS)
    before = builds()
    found = run(OTHER_STEPS)
    return dict(found, built=None if before is None else builds() - before)


def sequences_of(ability, arrays, steps):
    """(xs, flags, extra) of so many steps; zeros where an ability has no flags or nothing extra."""
    xs = arrays["xs"][:steps]
    flags = arrays[FLAGS[ability]] if ability in FLAGS else np.zeros(xs.shape[:2] + (1,), np.float32)
    extra = arrays[EXTRAS[ability]] if ability in EXTRAS else np.zeros((xs.shape[1], 1), np.float32)
    return xs, flags, extra


def probes_of(ability, arrays, steps):
    """The factors of h and of c in the loss."""
    probe = arrays["probe_inside" if ability == "variable-lengths" else "probe_h"][:steps]
    return probe, arrays["probe_c"] if ability == "all-states" else np.zeros_like(probe)


def weight_arrays(ability, arrays):
    """The weights of an ability's step by name, in the order in which its cell takes them; `head` comes last."""
    names = list(rnnbench_cells.find(CELLS.get(ability, "lstm")).parameters(1, 1))
    found = [(name, arrays["w_wide" if name == "w" and ability == "attention" else name]) for name in names]
    return dict(found + ([("head", arrays["head"])] if ability == "feedback" else []))


def step_around(ability, cell, ops):
    """The ability's step around a cell of any framework: `step(weights, head, x, flag, h, c, extra)` gives (h, c).

    `cell(weights, x, h, c)` is one step of an LSTM, or of the ability's own cell. `ops` has `matmul`, `concat` and
    `attend(query, memory)`; the rest is arithmetic that every framework's arrays have.
    """

    def step(weights, head, x, flag, h, c, extra):
        if ability == "recurrent-dropout":
            h = h * extra
        if ability == "reset":
            h, c = h * (1.0 - flag), c * (1.0 - flag)
        if ability == "feedback":
            x = x + ops.matmul(h, head)
        if ability == "attention":
            x = ops.concat([x, ops.attend(h, extra)])
        new_h, new_c = cell(weights, x, h, c)
        if ability == "variable-lengths":
            return new_h * flag + h * (1.0 - flag), new_c * flag + c * (1.0 - flag)
        return new_h, new_c

    return step


def arguments_of(function):
    """The names of a function's arguments, read from the framework: the evidence that something cannot be asked for."""
    names = list(inspect.signature(function).parameters)
    return ", ".join(name for name in names if name not in ("self", "args", "kwargs"))
