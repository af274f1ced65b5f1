"""Made-up runs for the tests of reports: every kind of row, two versions, phases and machines, and a hostile run."""

import msgspec

from made_up import ENVIRONMENT, make_contents, make_launch, make_proof, make_system
from rnnbench.domain.case import Case, LeftOut
from rnnbench.domain.result import Figure, Limit, Timed
from rnnbench.domain.run import Gpu, Machine
from rnnbench.store import append, create_folder

PUBLISHED_LABELS = {
    "pytorch/fine/eager": "PyTorch (fine-grained operators)",
    "pytorch/cell/eager": "PyTorch (static LSTM cell)",
    "pytorch/stack/eager": "PyTorch (CuDNN LSTM)",
}


def case(system, phase="train", *, workload="ptb-lm", device="cpu", precision="fp32", version="2.0"):
    framework = system.partition("/")[0]
    return Case(
        workload=workload, system=system, phase=phase, device=device, precision=precision,
        environment=f"{framework}-{version}",
    )  # fmt: skip


def timed(one, wall, **fields):
    """Verified, with two launches of four blocks of three batches each; one of the blocks is slow."""
    plain = {
        "batches": 3, "import_s": 1.0, "build_s": 0.5, "first_call_s": 4 * wall, "warm_seconds": 6 * wall,
        "warm_batches": 5, "peak_host_bytes": 400_000_000, "parameter_count": 571_520, "threads": 2,
        "versions": {"made": "up"},
    } | fields  # fmt: skip
    blocks = [3 * wall * factor for factor in (1.0, 1.02, 0.98, 1.1)]
    return [make_proof(one), *(make_launch(one, *blocks, round=number, **plain) for number in range(2))]


def complete(contents, **machine):
    """The run with environments, published labels and a machine."""
    run = contents.run
    everything = [*run.cases, *(left.case for left in run.left_out)]
    environments = {
        one.environment: msgspec.structs.replace(
            ENVIRONMENT, id=one.environment, framework=one.framework, version=one.environment.rpartition("-")[2],
            external=False, distributions={"numpy": "2.0", one.framework: "9.9"},
        )
        for one in everything
    }  # fmt: skip
    described = Machine(
        **{
            "cpu": "A Processor 9000", "cpus": 4, "cores": 2, "caches": {"L1d": "48K", "L2": "2M"},
            "memory_bytes": 16_000_000_000, "system": "An OS 1", "kernel": "Kernel 2", "python": "3.11.0", **machine,
        }
    )  # fmt: skip
    systems = {name: make_system(name, seed=PUBLISHED_LABELS.get(name, "")) for name in run.systems}
    whole = msgspec.structs.replace(run, environments=environments, machine=described, systems=systems)
    return msgspec.structs.replace(contents, run=whole)


def cpu_run():
    """Two workloads, both phases, every status, an older version, and the machine's limit."""
    fast, slow, script = case("pytorch/stack/eager"), case("pytorch/fine/eager"), case("pytorch/fine/script")
    wrong, broken, late = case("pytorch/fine/compile"), case("pytorch/fine/trace"), case("jax/packed/eager")
    rows = {
        slow: 0.4,
        fast: 0.1,
        script: 0.2,
        case("pytorch/cell/eager"): 0.25,
        case("jax/packed/jit-scan"): 0.15,
        case("pytorch/fine/eager", version="1.0"): 0.5,
        case("pytorch/stack/eager", version="1.0"): 0.12,
        case("pytorch/fine/eager", "forward"): 0.1,
        case("pytorch/stack/eager", "forward"): 0.04,
        case("pytorch/fine/eager", workload="ce-short"): 0.04,
        case("pytorch/stack/eager", workload="ce-short"): 0.005,
        case("pytorch/stack/eager", workload="ce-short", precision="bf16"): 0.003,
    }
    first = {script: {"first_call_s": 10.0}, slow: {"noisy": True}}
    records = [record for one, wall in rows.items() for record in timed(one, wall, **first.get(one, {}))]
    records += [make_proof(wrong, "wrong", 0.5, reason="gradient of layer0.fwd.w is off by 0.5")]
    records += [make_launch(wrong, 0.03, 0.03), make_proof(broken, "failed", figures=(), reason="it does not build")]
    records += [
        make_launch(broken, outcome="failed", reason="it fell over", stage="building", log_tail="line 1\nline 2")
    ]
    records += [make_proof(late), make_launch(late, outcome="timeout", reason="no end after 600 s", stage="first call")]
    records += [
        Limit(
            environment="pytorch-2.0", device="cpu", precision="fp32", started="2026-01-01T00:00:00+00:00",
            outcome="ok", products=(Timed(10**10, 0.001),), copies=(Timed(10**9, 0.05),),
        )
    ]  # fmt: skip
    unsupported = LeftOut(case=case("pytorch/stack/cudagraph"), reason="a CUDA graph needs a CUDA device")
    return complete(make_contents([*rows, wrong, broken, late], *records, left_out=[unsupported]))


def gpu_run():
    rows = {
        case("pytorch/fine/eager", device="cuda"): 0.3,
        case("pytorch/stack/eager", device="cuda"): 0.01,
    }
    records = [record for one, wall in rows.items() for record in timed(one, wall, peak_device_bytes=2_000_000_000)]
    gpu = Gpu(name="A GPU 200", driver="500.1", memory_mib=80_000)
    return complete(make_contents(list(rows), *records), gpus=(gpu,))


HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=alert(1)>`|*_[x](javascript:alert(2))&amp;\"'"
)


def hostile_run():
    """Markup in every string of a run, except where only fixed values are allowed (phases, statuses)."""
    whole = cpu_run()
    run = whole.run
    nasty = {
        "created": HOSTILE, "command": [HOSTILE], "data": HOSTILE,
        "tool": {"version": HOSTILE, "revision": HOSTILE},
        "machine": {
            **_plain(run.machine), "cpu": HOSTILE, "system": HOSTILE, "kernel": HOSTILE, "python": HOSTILE,
            "caches": {HOSTILE: HOSTILE}, "gpus": [{"name": HOSTILE, "driver": HOSTILE, "memory_mib": 1}],
        },
    }  # fmt: skip
    names = {workload: f"{workload}{HOSTILE}" for workload in run.workloads}
    places = {name: f"{name}{HOSTILE}" for name in run.environments}

    def system(name):
        framework, granularity, execution = name.split("/")
        return f"{framework}{HOSTILE}/{granularity}/{execution}{HOSTILE}"

    def hostile(one):
        return {
            **_plain(one), "workload": names.get(one.workload, one.workload), "system": system(one.system),
            "environment": places[one.environment],
        }  # fmt: skip

    nasty["workloads"] = {
        names[name]: {**_plain(one), "name": names[name], "origin": HOSTILE} for name, one in run.workloads.items()
    }
    nasty["proved_on"] = {names[name]: small for name, small in run.proved_on.items()}
    nasty["systems"] = {
        system(name): {
            **_plain(one), "description": HOSTILE, "seed": HOSTILE, "framework": f"{one.framework}{HOSTILE}",
            "granularity": "fine" if one.granularity == "fine" else HOSTILE,
            "execution": one.execution if one.execution == "eager" else f"{one.execution}{HOSTILE}",
        }
        for name, one in run.systems.items()
    }  # fmt: skip
    nasty["environments"] = {
        places[name]: {
            **_plain(one), "id": places[name], "framework": f"{one.framework}{HOSTILE}",
            "version": f"{one.version}{HOSTILE}", "python_version": HOSTILE, "distributions": {HOSTILE: HOSTILE},
        }
        for name, one in run.environments.items()
    }  # fmt: skip
    nasty["cases"] = [hostile(one) for one in run.cases]
    nasty["left_out"] = [{"case": hostile(left.case), "reason": HOSTILE} for left in run.left_out]
    records = []
    for record in whole.records:
        fields = {**_plain(record), "kind": record.__struct_config__.tag, "reason": HOSTILE, "log_tail": HOSTILE}
        fields |= {"stage": HOSTILE, "versions": {HOSTILE: HOSTILE}}
        if hasattr(record, "case"):
            fields["case"] = hostile(record.case)
        if hasattr(record, "figures"):
            fields["figures"] = [_plain(Figure(HOSTILE, one.error, one.tolerance)) for one in record.figures]
        if hasattr(record, "traceback"):
            fields |= {"traceback": HOSTILE, "device_name": HOSTILE, "started": HOSTILE}
        records.append(msgspec.convert(fields, type(record)))
    return msgspec.structs.replace(
        whole, run=msgspec.convert({**_plain(run), **nasty}, type(run)), records=tuple(records), damaged=(HOSTILE,)
    )


def _plain(struct):
    return msgspec.to_builtins(struct)


def store(folder, contents):
    """The run as a folder on disk."""
    create_folder(folder, contents.run)
    for record in contents.records:
        append(folder, record)
    return folder


#: Of the run with many rows. Its times are as close to each other as those of real systems.
MANY = {
    framework: {
        "fine": ("eager", "script", "compile", "jit-scan", "graph-while"),
        "packed": ("eager", "script", "compile-cell", "jit-scan-unroll8", "graph"),
        "cell": ("eager", "jit-scan"),
        "layer": ("eager", "graph-unrolled"),
    }
    for framework in ("pytorch", "tensorflow", "jax", "keras-tensorflow", "flax")
}


def large_run():
    """Seventy rows in one group, and the same workload forward."""
    names = [
        f"{framework}/{granularity}/{execution}"
        for framework, granularities in MANY.items()
        for granularity, executions in granularities.items()
        for execution in executions
    ]
    rows = {case(name): 0.4 + 0.011 * ((11 * place) % 70) for place, name in enumerate(names)}
    rows |= {case(name, "forward"): 0.1 + 0.002 * place for place, name in enumerate(names[:5])}
    rows[case("tensorflow/fine/eager")] = 2.1
    broken = case("pytorch/stack/eager")
    records = [record for one, wall in rows.items() for record in timed(one, wall)]
    records += [make_proof(broken), make_launch(broken, outcome="failed", reason="a long reason " * 20, stage="first")]
    unsupported = LeftOut(case=case("jax/stack/cudagraph"), reason="a CUDA graph needs a CUDA device")
    return complete(make_contents([*rows, broken], *records, left_out=[unsupported]))


def small_run(phase="forward"):
    """One row, in one phase."""
    only = case("pytorch/stack/eager", phase)
    return complete(make_contents([only], *timed(only, 0.1)))


def failed_run():
    """Nothing is verified: a failure, a row that computes something else, one that cannot run here."""
    wrong, broken = case("pytorch/fine/compile"), case("pytorch/fine/trace")
    records = [make_proof(wrong, "wrong", 0.5, reason="the loss is off by 0.5"), make_launch(wrong, 0.03, 0.03)]
    records += [make_proof(broken, "failed", figures=(), reason="it does not build")]
    unsupported = LeftOut(case=case("pytorch/stack/cudagraph"), reason="a CUDA graph needs a CUDA device")
    return complete(make_contents([wrong, broken], *records, left_out=[unsupported]))
