"""`rnnbench explain`: its text, its JSON, and its errors."""

import pytest

from analysis_runs import MadeUpRow, contents_of, make_limit
from made_up import make_case
from rnnbench.store import RECORDS_FILE, append, create_folder

SMALL = "ptb-lm[batch=16]"


def store(folder, contents):
    create_folder(folder, contents.run)
    for record in contents.records:
        append(folder, record)
    return str(folder)


@pytest.fixture
def cpu(tmp_path):
    """Four rows of one workload, one of another, and the machine's limit."""
    fine = "PyTorch (fine-grained operators)"
    rows = [
        MadeUpRow("toy/fine/eager", 8.0, workload=SMALL, seed=fine, start={"first_call_s": 8.5}),
        MadeUpRow("toy/fine/compile", 4.0, workload=SMALL, start={"first_call_s": 44.5, "peak_host_bytes": 3_000_000}),
        MadeUpRow("toy/packed/eager", 5.0, workload=SMALL),
        MadeUpRow("toy/packed/trace", 6.0, workload=SMALL, start={"first_call_s": 7.0}),
        MadeUpRow("toy/stack/eager", 2.0, workload=SMALL),
        MadeUpRow("toy/stack/eager", 1.0, workload="ce-short"),
    ]
    return store(tmp_path / "cpu", contents_of(*rows, others=[make_limit()]))


@pytest.fixture
def gpu(tmp_path):
    label = "PyTorch (fine-grained operators)"
    row = MadeUpRow("toy/fine/eager", 1.0, workload=SMALL, device="cuda", seed=label)
    cell = MadeUpRow("toy/cell/eager", 0.25, workload=SMALL, device="cuda", seed="PyTorch (static LSTM cell)")
    limit = make_limit(make_case(device="cuda"), flops_per_s=5e13, bytes_per_s=4e12, noisy=True)
    return store(tmp_path / "gpu", contents_of(row, cell, others=[limit]))


def line_of(text, beginning):
    (line,) = [line for line in text.splitlines() if line.strip().startswith(beginning)]
    return line.split()


def test_what_to_do_is_said_in_ten_lines(cpu, call):
    answer = call("explain", cpu)
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert len(lines) <= 10
    assert lines[:3] == [
        f"{SMALL} · train · cpu · fp32",
        "  Use toy/stack/eager: 2.00 s [2.00, 2.00] a batch, the fastest of 5 verified rows.",
        "  toy: your loop costs 4.00×; run it with fine/compile (2.00×) or rewrite as stack/eager (1.00×).",
    ]
    assert "  Only toy/stack/eager is verified, 1.00 s [1.00, 1.00] a batch: measure others to compare." in lines
    assert "Quick conclusions" not in answer.out  # those of 2019 are asked for
    assert "--claims" in lines[-1]


def test_the_conclusions_of_2019_are_there_when_asked_for(cpu, call):
    answer = call("explain", cpu, "--claims")
    assert answer.out.startswith("Quick conclusions of Carrot (2019;")
    assert "Use toy" not in answer.out


def test_everything_is_said_about_a_run(cpu, call):
    answer = call("explain", cpu, "--details", "--claims")
    assert (answer.code, answer.err) == (0, "")
    text = " ".join(answer.out.split())
    assert "toy/stack/eager is the fastest of 5 verified rows: 2.00 s [2.00, 2.00] a batch." in text
    assert "The price of flexibility: toy/fine/eager takes 4.00 times [4.00, 4.00] as long as toy/stack/eager." in text
    assert "toy/fine/compile wins back 50.0 % [50.0, 50.0] of that" in text
    assert (
        "toy/fine/compile compiles 40.0 s longer than toy/fine/eager and has made up for it after 10 [10, 10] batches"
        in text
    )
    assert "limit cpu fp32: 100 GFLOP/s in matrix products (toy-1.0), 10.0 GB/s in copies (toy-1.0)" in text
    assert "Work of one batch: 19.2 GFLOP, 127 MB; at least 192 ms on this machine, bound by matrix products." in text
    row = line_of(answer.out, "toy/fine/compile  ")
    assert row[:5] == ["toy/fine/compile", "4.00", "s", "[4.00,", "4.00]"]
    assert " ".join(row[5:]) == "2.00× 4.8 % 0.50× 50.0 % [50.0, 50.0] 40.5 s 10 [10, 10] batches 3.00 MB –"
    assert "never" in line_of(answer.out, "toy/packed/trace  ")
    assert "Quick conclusions of Carrot (2019;" in text


def test_a_cpu_and_a_gpu_are_explained_together(cpu, gpu, call):
    answer = call("explain", cpu, gpu, "--details", "--claims")
    text = " ".join(answer.out.split())
    assert "run 1 " in text
    assert "run 2 " in text
    assert f"{SMALL} · train · cuda · fp32 (run 2)" in text
    assert (
        "50.0 TFLOP/s in matrix products (toy-1.0), 4.00 TB/s in copies (toy-1.0), measured while the machine was busy"
        in text
    )
    measured = (
        "fine-grained operators over static LSTM cell: PyTorch, train, cuda: 4.00× [4.00, 4.00], 2019 4.34×, holds"
    )
    assert measured in text
    assert "On the GPU the coarser operators are faster than the fine-grained ones: not measured" in text


def test_an_old_run_says_that_its_limit_is_not_known(tmp_path, call):
    old = store(tmp_path / "old", contents_of(MadeUpRow("toy/fine/eager", 1.0)))
    answer = call("explain", old, "--details")
    assert answer.code == 0
    assert "limit  not measured in this run" in answer.out


def test_scripts_get_the_whole_analysis(cpu, gpu, call):
    found = call("explain", cpu, gpu, "--json").json
    assert [len(rows) for rows in found["rows"]] == [6, 2]
    assert [one["group"]["run"] for one in found["groups"]] == [0, 0, 1]
    assert found["groups"][0]["gaps"][0]["times"] == pytest.approx([4.0, 4.0, 4.0])
    assert [claim["number"] for claim in found["claims"]] == [1, 2, 3, 4]


def test_one_workload_can_be_chosen_by_its_full_name_or_its_id(cpu, call):
    for name in (SMALL, "ptb-lm"):
        answer = call("explain", cpu, "-w", name)
        assert SMALL in answer.out
        assert "ce-short" not in answer.out
    other = call("explain", cpu, "-w", "ce-short", "--json").json
    assert [one["group"]["workload"] for one in other["groups"]] == ["ce-short"]
    assert other["claims"] == []  # they are about ptb-lm


def test_unknown_workloads_and_runs_are_refused(cpu, tmp_path, call):
    answer = call("explain", cpu, "-w", "ce-long")
    assert answer.code == 2
    assert "no run here has the workload 'ce-long'" in answer.err
    assert f"there are: {SMALL}, ce-short" in answer.err
    assert call("explain", str(tmp_path / "nowhere")).code == 2
    assert call("explain").code == 2


def test_damaged_lines_are_named_and_the_rest_is_explained(cpu, call):
    with open(f"{cpu}/{RECORDS_FILE}", "a") as file:
        file.write("{not json\n")
    answer = call("explain", cpu)
    assert answer.code == 0
    assert "launches.jsonl, line 20: " in answer.err
    assert "the fastest of 5 verified rows" in answer.out
