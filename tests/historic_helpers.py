"""What tests of frameworks for old interpreters share: which they are, and their environments or why there are none."""

import pytest

from rnnbench.domain.system import satisfies
from rnnbench.environments.interpreters import no_interpreter
from rnnbench.environments.registry import find
from rnnbench.environments.spec import no_wheels, parse_spec
from rnnbench.manifests import manifests


def is_historic(framework):
    """Whether no Python that runs rnnbench can run this framework."""
    required = parse_spec(framework).python
    return not any(satisfies(f"3.{minor}", required) for minor in range(11, 20))


HISTORIC = [framework for framework in manifests() if is_historic(framework)]


def environment_or_skip(framework, environment_of):
    """The environment, created where it is missing; a machine that cannot have it skips the test and says why."""
    spec = parse_spec(framework)
    if find(spec) is None and (reason := why_not(spec)):
        pytest.skip(reason)
    return environment_of(framework)


def why_not(spec):
    """Why the environment of a spec cannot be created here; empty when it can."""
    return no_wheels(spec.architectures) or no_interpreter(spec.python)
