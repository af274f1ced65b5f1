"""What the frameworks' tests share: verdicts by name, jobs like the driver's, snippets run in an environment."""

import json
import os
import subprocess

import msgspec

import rnnbench
from made_up import make_resolved_case
from rnnbench.domain.catalog import parse_workload
from rnnbench.environments.environment import child_variables
from rnnbench.files import cells_package, fuse_package, worker_package
from rnnbench.launch.job import make_job
from rnnbench.manifests import manifests
from rnnbench.method import make_method
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs

#: Tiny, but with all features a network can have: embedding and head bias; two directions and lengths.
LANGUAGE = "ptb-lm[batch=3,embedding=5,hidden=4,layers=2,steps=4,vocabulary=11]"
SPEECH = "bi-ctc-long[batch=3,classes=6,features=5,hidden=4,labels=2,layers=2,steps=8]"

#: The beginning of every snippet: the worker's own first steps, until its framework is imported.
PRELUDE = """
import json, os, sys
job = json.load(sys.stdin)
from rnnbench_worker.protocol import confine
confine(job)
from rnnbench_worker.loading import load_framework, load_inputs
framework = load_framework(job["folder"], job["framework"])
"""


def verdicts(plan, **method):
    """The verification of each (system, workload, phase). None is cached and none is left out."""
    session = rnnbench.verify_plan(plan, use_cache=False, threads=1, **method)
    found = {
        (one.case.system, one.case.workload.partition("[")[0], one.case.phase): one for one in session.verifications
    }
    assert len(found) == len(plan.cases), "some case has no verdict"
    return found


def not_verified(found):
    """A readable line for each case that is not verified; empty when all are."""
    return [
        f"{system} on {workload}, {phase}: {one.verdict}, {one.reason}"
        for (system, workload, phase), one in found.items()
        if one.verdict != "verified"
    ]


def job_for(system, workload, place, *, precision="fp32", phase="forward", **method):
    """The job the driver would give a worker, with its inputs written to `place`."""
    plan = rnnbench.make_plan([system], [workload], phases=[phase], device="cpu")
    shape = parse_workload(workload)
    inputs = place / "inputs.npz"
    write_inputs(inputs, make_parameters(shape), make_batches(shape, 3))
    case = msgspec.structs.replace(plan.cases[0], precision=precision)
    measured = make_method(**method)
    manifest = manifests()[case.framework]
    resolved = make_resolved_case(case, workload=shape, system=plan.systems[system], manifest=manifest)
    return make_job("measure", resolved, measured, str(inputs))


def run_snippet(environment, job, snippet):
    """Run Python in the environment as a worker is run, and return what the snippet assigns to `answer`."""
    place = os.path.dirname(job["inputs"])
    for package in (worker_package().resolve(), cells_package(), fuse_package()):
        link = os.path.join(place, package.name)
        if not os.path.islink(link):
            os.symlink(package, link)
    ended = subprocess.run(
        [environment.python, "-c", f"{PRELUDE}\n{snippet}\nprint(json.dumps(answer))"],
        input=msgspec.json.encode(job),
        capture_output=True,
        env={**child_variables(external=environment.external), "PYTHONPATH": place},
        cwd=place,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return json.loads(ended.stdout.splitlines()[-1])
