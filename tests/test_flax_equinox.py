"""Flax and Equinox: their modules in JAX's network compute what the reference computes."""

import pytest

import rnnbench
from jax_helpers import assert_same_jax, round_trip
from rnnbench.domain.catalog import parse_workload
from rnnbench.domain.workload import parameter_count
from rnnbench.manifests import manifests
from systems_helpers import LANGUAGE, job_for, not_verified, run_snippet, verdicts

pytestmark = pytest.mark.slow


@pytest.fixture(params=["flax", "equinox"])
def library(request, environment_of):
    """(its system, its environment)"""
    return f"{request.param}/cell/jit-scan", environment_of(request.param)


def test_it_is_verified_on_ids_and_on_two_directions_with_lengths(library):
    assert not_verified(verdicts(rnnbench.make_plan([library[0]], ["ptb-lm", "bi-ctc-long"], device="cpu"))) == []


def test_mixed_precision_is_verified(library):
    plan = rnnbench.make_plan([library[0]], ["ce-short"], device="cpu", precisions=["bf16"])
    assert not_verified(verdicts(plan)) == []


def test_parameters_come_back_to_the_bit_and_a_step_is_compiled_once(library, tmp_path):
    system, environment = library
    found = round_trip(environment, system, LANGUAGE, tmp_path)
    assert found == {"parameters": parameter_count(parse_workload(LANGUAGE)), "compiled": 1}


VERSIONS = "answer = framework.describe(job)['versions']"


def test_the_library_is_among_the_versions(library, tmp_path):
    system, environment = library
    name = system.partition("/")[0]
    versions = run_snippet(environment, job_for(system, LANGUAGE, tmp_path), VERSIONS)
    assert versions[name] == manifests()[name].version
    assert versions["jax"] == manifests()["jax"].version


@pytest.mark.parametrize("framework", ["flax", "equinox"])
def test_jax_is_the_same_one_everywhere(framework):
    assert_same_jax(framework)
