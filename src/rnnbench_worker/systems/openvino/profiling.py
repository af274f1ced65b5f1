"""OpenVINO's performance counters, which tell of the last inference what each node took. It writes no trace."""

import openvino

from rnnbench_worker.timeline import Timeline, end_to_end


def profiler(job):
    return watch


def watch(program, block, folder):
    block(1)
    executed = openvino.ProfilingInfo.Status.EXECUTED
    totals = [
        (node.node_type, 1, node.real_time.total_seconds())
        for node in program.engine().get_profiling_info()
        if node.status == executed
    ]
    return Timeline(host=end_to_end(totals), device=[], batches=1, file="")
