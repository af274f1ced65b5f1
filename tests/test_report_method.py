"""The line that describes how a run was measured."""

from made_up import make_case, make_contents, make_launch
from rnnbench.report.describe import describe_method

CASE = make_case()


def test_the_number_of_workers_at_once_comes_from_the_launches():
    alone = make_contents([CASE], make_launch(CASE, 1.0))
    assert describe_method(alone).endswith("3 launches a case, 1 thread")
    crowded = make_contents(
        [CASE], make_launch(CASE, 1.0, concurrent_workers=4), make_launch(CASE, 1.0, concurrent_workers=7)
    )
    assert describe_method(crowded).endswith("up to 8 workers at once, which makes first calls and warm-ups longer")
