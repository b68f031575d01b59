import numpy as np
import pytest

from probgap.metrics import lee_liu_score, recovered_share


def test_recovered_share_by_hand():
    assert recovered_share(0.90, 0.90, 0.95) == 0.0
    assert recovered_share(0.95, 0.90, 0.95) == pytest.approx(1.0)
    assert recovered_share(0.85, 0.90, 0.95) == pytest.approx(-1.0)
    assert np.isnan(recovered_share(0.9, 0.9, 0.9))


def test_recovered_share_refuses_what_is_not_a_score():
    with pytest.raises(ValueError, match=r"naive must be a finite score\. Got nan"):
        recovered_share(0.9, float("nan"), 0.9)


def test_lee_liu_by_hand():
    # recall 1/2 of the labelled, half of all predicted positive: (1/4) / (1/2)
    assert lee_liu_score([1, 1, 0, 0], [1, 0, 1, 0]) == pytest.approx(0.5)
    assert lee_liu_score([1, 1, 0, 0], [0, 0, 0, 0]) == 0.0
    assert lee_liu_score(["a", "b"], ["a", "b"], pos_label="a") == pytest.approx(2.0)


def test_lee_liu_refuses_another_length():
    with pytest.raises(
        ValueError, match=r"y_pred must have one value for each of the 2"
    ):
        lee_liu_score([1, 0], [1])
