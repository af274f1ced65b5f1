"""Keras on PyTorch builds PyTorch's graphs."""

from rnnbench_worker.systems.pytorch.graph import told, watching


def graphs(job, make):
    with watching() as seen:
        program, fed = make()
        program.call_of(job["phase"])(fed)
    return told(seen)
