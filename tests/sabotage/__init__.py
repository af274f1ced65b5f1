"""The framework of broken systems, as a worker sees it."""


def describe(job):
    import numpy

    return {"versions": {"numpy": numpy.__version__}, "device": "cpu", "device_name": "NumPy", "threads": 1}


def build(job, parameters):
    from .broken import SYSTEMS

    return SYSTEMS[job["execution"]](job, parameters)
