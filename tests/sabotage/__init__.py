"""The framework of broken systems, as a worker sees it."""


def describe(job):
    import numpy

    threads = job["threads"] + (job["execution"] == "more-threads")
    return {"versions": {"numpy": numpy.__version__}, "device": "cpu", "device_name": "NumPy", "threads": threads}


def build(job, parameters):
    from . import broken, full_size, timed, updates

    systems = {**broken.SYSTEMS, **full_size.SYSTEMS, **timed.SYSTEMS, **updates.SYSTEMS}
    return systems[job["execution"]](job, parameters)


def rates(job):
    from .broken import RATES

    return RATES.get(job["execution"])
