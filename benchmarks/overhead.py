"""The overhead of the tool itself: rnnbench's time divided by that of a bare loop; the target is 1.00 ± 0.02.

Both run in one process of the PyTorch environment and alternate block by block, so that other load on the machine
affects both equally.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rnnbench.domain.case import Case
from rnnbench.domain.catalog import CATALOG
from rnnbench.environments.registry import resolve
from rnnbench.environments.spec import parse_spec
from rnnbench.files import worker_package
from rnnbench.launch.job import ResolvedCase, make_job
from rnnbench.manifests import manifests
from rnnbench.method import make_method
from rnnbench.reference.inputs import make_batches, make_parameters, write_inputs

SYSTEMS = ("pytorch/stack/eager", "pytorch/packed/eager")
ROUNDS = 60
BLOCK = 1
TARGET = 0.02


def measure(name: str, inputs: Path, source: Path) -> dict[str, float]:
    manifest = manifests()["pytorch"]
    system = next(one for one in manifest.system if one.name == name)
    environment = resolve(parse_spec("pytorch"), create_missing=True, report=print)
    workload = CATALOG["ce-short"]
    case = Case(
        workload=workload.name, system=name, phase="train", device="cpu", precision="fp32", environment=environment.id
    )
    resolved = ResolvedCase(case=case, workload=workload, system=system, manifest=manifest, environment=environment)
    job = make_job("measure", resolved, make_method(), str(inputs))
    answer = subprocess.run(
        [environment.python, str(Path(__file__).with_name("bare_loop.py"))],
        input=json.dumps({**job, "rounds": ROUNDS, "block": BLOCK}),
        env={**os.environ, "PYTHONPATH": str(source), "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode:
        sys.exit(answer.stderr)
    found: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return found


def main() -> None:
    workload = CATALOG["ce-short"]
    missed = False
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rnnbench_worker").symlink_to(worker_package())
        inputs = Path(folder) / "inputs.npz"
        write_inputs(inputs, make_parameters(workload), make_batches(workload, 4))
        print(f"overhead on ce-short train, {ROUNDS} blocks of {BLOCK} batch each, medians:")
        for name in SYSTEMS:
            times = measure(name, inputs, Path(folder))
            ratio = times["rnnbench"] / times["bare"]
            within = abs(ratio - 1) <= TARGET
            missed |= not within
            print(
                f"  {name}: rnnbench {times['rnnbench'] * 1e3:.1f} ms, bare loop {times['bare'] * 1e3:.1f} ms, "
                f"ratio {ratio:.3f} (target 1.00 ± {TARGET}) {'ok' if within else 'MISSED'}"
            )
    sys.exit(1 if missed else 0)


main()
