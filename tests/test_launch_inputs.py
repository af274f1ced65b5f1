"""The input files that workers share: one for each workload, whatever its name."""

import msgspec

from rnnbench.domain.catalog import parse_workload
from rnnbench.launch.job import write_workload_inputs

TINY = parse_workload("ce-short[batch=2,classes=2,features=2,hidden=2,steps=3]")


def test_a_file_is_written_once(tmp_path, monkeypatch):
    first = write_workload_inputs(TINY, 0, tmp_path, 2)
    monkeypatch.setattr("rnnbench.launch.job.write_inputs", None)
    assert write_workload_inputs(TINY, 0, tmp_path, 2) == first


def test_workloads_of_one_name_or_of_similar_names_share_no_file(tmp_path):
    longer = msgspec.structs.replace(TINY, steps=4)
    alike = [msgspec.structs.replace(TINY, name=name) for name in ("a b", "a-b", "a/b")]
    paths = {write_workload_inputs(one, 0, tmp_path, 1) for one in (TINY, longer, *alike)} | {
        write_workload_inputs(TINY, 0, tmp_path, 2)
    }
    assert len(paths) == 6
