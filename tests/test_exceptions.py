import pytest

from probgap import PGPUClassifier
from probgap.exceptions import (
    BoundaryWarning,
    InvalidInputError,
    ProbgapError,
    ProbgapWarning,
)


def test_errors_and_warnings_can_be_caught_by_their_public_names():
    assert issubclass(BoundaryWarning, ProbgapWarning)
    assert issubclass(ProbgapWarning, UserWarning)
    assert issubclass(InvalidInputError, ProbgapError)
    with pytest.raises(InvalidInputError, match=r"Got one class"):
        PGPUClassifier().fit([[0.0], [1.0]], [0, 0])
