"""What the tests of JAX and of the libraries on top of it share."""

from rnnbench.manifests import manifests
from systems_helpers import job_for, run_snippet

#: A training step gives its parameters' memory away, `gradients` must not.
_ROUND_TRIP = """
framework.describe(job)
given, batches = load_inputs(job["inputs"])

def same(found):
    assert set(found) == set(given)
    for name, array in given.items():
        assert found[name].dtype == array.dtype and found[name].shape == array.shape, name
        assert found[name].tobytes() == array.tobytes(), name

program = framework.build(job, given)
same(program.parameters())
assert set(program.gradients(program.feed(program.stage(batches[0])))) == set(given)
same(program.parameters())
for batch in batches:
    program.sync(program.train(program.feed(program.stage(batch))))
# Results that are placed otherwise than what came in would have the second call compile again.
answer = {"parameters": program.parameter_count(), "compiled": program._train._cache_size()}
"""


def round_trip(environment, system, workload, place):
    """Parameters come back to the bit; how many there are, and how often three training steps were compiled."""
    return run_snippet(environment, job_for(system, workload, place, phase="train"), _ROUND_TRIP)


_READING = """
import numpy as np
framework.describe(job)
given, batches = load_inputs(job["inputs"])
program = framework.build(job, given)
handle = program.forward(program.feed(program.stage(batches[0])))
answer = bool(np.shares_memory(program.logits(handle), np.asarray(handle)))
"""


def reads_the_handle_itself(environment, system, workload, place):
    """Whether logits are read from the program's own array, which on a GPU then holds what was read until its end."""
    return run_snippet(environment, job_for(system, workload, place, phase="forward"), _READING)


def assert_same_jax(framework):
    """What stands on JAX has the very same one, so that rows differ by what stands on it alone."""
    jax = manifests()["jax"]
    (entry,) = manifests()[framework].requirements
    pinned = jax.requirements[0]
    assert {line.format(version=jax.version) for line in pinned.cpu} < set(entry.cpu)
    assert {line.format(version=jax.version) for line in pinned.cuda} < set(entry.cuda)
    assert set(pinned.constraints) <= set(entry.constraints)
