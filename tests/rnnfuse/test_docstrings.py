"""The examples of the documentation run."""

import doctest

import pytest
import torch

from rnnfuse import recurrent, stack


@pytest.mark.parametrize("module", [recurrent, stack])
def test_examples(module):
    found = doctest.testmod(module, extraglobs={"torch": torch, "nn": torch.nn})
    assert found.attempted > 0
    assert found.failed == 0
