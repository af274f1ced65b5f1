"""First updates at full size: by squares, and for CTC in fp32, where small gradients have an unsure sign, by values."""

import numpy as np
import pytest

from rnnbench.domain.catalog import parse_workload
from rnnbench.reference.training import LEARNING_RATE
from rnnbench.verify.expected import Expected
from rnnbench.verify.full_size import FullSizeCheck

CTC, CROSS_ENTROPY = (parse_workload(f"{name}[hidden=320]") for name in ("bi-ctc-long", "ce-short"))
NAME, SIZE = "layer0.fwd.b", 1280
MOVED = np.where(np.arange(SIZE) % 3 == 0, -LEARNING_RATE, LEARNING_RATE)


def first_update(folder, workload, after, precision="fp32"):
    """The figure of the first update, for a worker that delivers these parameters."""
    np.savez(folder / "first.npz", **{"loss/0": np.float64(1.0), f"after/{NAME}": after})
    expected = Expected(workload=workload, phase="train", updates=1, losses=(1.0,), moved={NAME: MOVED})
    check = FullSizeCheck(expected, precision, {NAME: np.zeros(SIZE)})
    figures = check.judge({"first": str(folder / "first.npz")}, folder).figures
    return next(figure for figure in figures if figure.quantity == f"first update of {NAME}")


def test_one_element_that_goes_the_other_way_is_in_order_by_ctc_in_fp32_only(tmp_path):
    after = MOVED.copy()
    after[17] *= -1
    assert first_update(tmp_path, CTC, after).error == pytest.approx(2 / SIZE)
    assert first_update(tmp_path, CTC, after).passes
    assert not first_update(tmp_path, CROSS_ENTROPY, after).passes
    assert first_update(tmp_path, CTC, after, "tf32").error == pytest.approx(2 / SIZE**0.5)


WRONG = {
    "another rate": MOVED * 1.006,
    "four units the other way": np.where(np.arange(SIZE) % 320 < 4, -MOVED, MOVED),
    "four units left out": np.where(np.arange(SIZE) % 320 < 4, 0, MOVED),
    "every second element": np.where(np.arange(SIZE) % 2, 0, MOVED),
    "nothing": np.zeros(SIZE),
    "reversed": -MOVED,
    "no number": np.full(SIZE, np.nan),
    "another shape": MOVED[:-1],
}


@pytest.mark.parametrize("workload", [CTC, CROSS_ENTROPY], ids=["ctc", "cross-entropy"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_updates_are_found(tmp_path, workload, what):
    assert first_update(tmp_path, workload, MOVED).passes
    assert not first_update(tmp_path, workload, WRONG[what]).passes
