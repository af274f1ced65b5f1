"""The small version of a workload keeps its structure and nothing else."""

import pytest

from rnnbench.domain.catalog import CATALOG, parse_workload
from rnnbench.domain.workload import flops
from rnnbench.errors import UserError
from rnnbench.verify.proofs import small_version

STRUCTURE = ("bidirectional", "head_on", "head_bias", "loss", "variable_length")


@pytest.mark.parametrize("name", CATALOG)
def test_structure_stays_and_the_work_becomes_tiny(name):
    workload = CATALOG[name]
    small = small_version(workload)
    assert all(getattr(small, field) == getattr(workload, field) for field in STRUCTURE)
    assert small.layers == min(workload.layers, 3)
    assert flops(small, "train") < 1e7
    assert small.id == name


def test_workloads_of_one_structure_share_their_small_version():
    assert small_version(parse_workload("ce-short[batch=3,steps=9]")) == small_version(CATALOG["ce-short"])


def test_another_structure_has_another_name():
    deeper = small_version(parse_workload("ce-short[layers=3]"))
    assert deeper.layers == 3
    assert deeper.name != small_version(CATALOG["ce-short"]).name
    assert small_version(parse_workload("ce-short[layers=9]")) == deeper


def test_a_number_given_twice_is_refused():
    with pytest.raises(UserError, match="given twice"):
        parse_workload("ce-short[batch=8,batch=16]")
