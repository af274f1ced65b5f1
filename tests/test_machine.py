"""The description of the machine."""

import pytest

from rnnbench.domain.run import Gpu
from rnnbench.machine import find_gpus


@pytest.mark.parametrize(
    ("says", "found"),
    [
        ("echo 'NVIDIA H200, 550.54.15, 143771'", (Gpu(name="NVIDIA H200", driver="550.54.15", memory_mib=143771),)),
        ("echo 'NVIDIA GB10, 580.95, [N/A]'", (Gpu(name="NVIDIA GB10", driver="580.95", memory_mib=0),)),
        ("echo 'No devices were found'", ()),
        ("echo 'NVIDIA-SMI has failed, because, of, this, and, that'", ()),
        ("exit 9", ()),
    ],
)
def test_gpus_are_those_that_nvidia_smi_lists(tmp_path, monkeypatch, says, found):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{says}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_gpus() == found


def test_without_nvidia_smi_there_is_no_gpu(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_gpus() == ()
