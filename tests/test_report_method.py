"""The line that says how a run was measured."""

from made_up import make_case, make_contents, make_launch
from rnnbench.report.describe import describe_method

CASE = make_case()


def test_workers_at_once_are_those_that_there_were_and_not_those_asked_for_at_first():
    alone = make_contents([CASE], make_launch(CASE, 1.0))
    assert describe_method(alone).endswith("3 launches a case, 1 thread")
    crowded = make_contents(
        [CASE], make_launch(CASE, 1.0, concurrent_workers=4), make_launch(CASE, 1.0, concurrent_workers=7)
    )
    assert describe_method(crowded).endswith("up to 8 workers at once: first call and warm-up too long")
