"""Loading what a job names: the framework's folder as a package, the input arrays, and the program built from both."""

import hashlib
import importlib
import importlib.util
import os
import sys
import time

import numpy as np

#: When this process began its work, by the clock of all times.
STARTED = time.perf_counter()

#: What a system is told of its job. Not whether it is verified or timed: both must look the same to it.
TOLD = (
    "framework", "system", "granularity", "execution", "workload", "phase", "device", "precision", "threads", "cpus",
    "flush_denormals", "profile_folder",
)  # fmt: skip


def load_framework(folder, name):
    """Import a framework's folder, wherever it is, as a package whose modules can import each other."""
    package = "rnnbench_systems_" + name.replace("-", "_").replace(".", "_")
    path = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location(package, path, submodule_search_locations=[folder])
    module = importlib.util.module_from_spec(spec)
    sys.modules[package] = module
    spec.loader.exec_module(module)
    return module


def told(job):
    """The part of the job that a system may see."""
    return {name: job[name] for name in TOLD if name in job}


def load_inputs(path):
    """(parameters, batches) from the driver's .npz; nothing is ever unpickled."""
    parameters, batches = {}, {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            kind, name = key.split("/", 1)
            if kind == "parameter":
                parameters[name] = archive[key]
            else:
                index, field = name.split("/")
                batches.setdefault(int(index), {})[field] = archive[key]
    return parameters, [batches[index] for index in sorted(batches)]


def build_program(job, framework, channel):
    """(program, parameters, batches) of the job. Sends `built`, with how long building took."""
    parameters, batches = load_inputs(job["inputs"])
    start = time.perf_counter()
    program = framework.build(told(job), parameters)
    channel.send(
        "built",
        seconds=time.perf_counter() - start,
        parameters=int(program.parameter_count()),
        device=program.device,
    )
    return program, parameters, batches


def require_same_cell(job):
    """A user's file may be edited while a run goes on: its rows must be of one version."""
    own = job.get("workload", {}).get("own")
    if not own:
        return
    with open(own["path"], "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if digest != own["digest"]:
        raise RuntimeError("{} has changed since the run began".format(own["path"]))


def inspect_cell(job, framework, channel):
    """The mode `cell`: what follows from a user's class."""
    channel.send("cell", **framework.inspect_cell(told(job)))


def do_nothing(job, framework, channel):
    """The mode `start` asks for nothing but loading the framework."""
