import pickle

import pytest

from probgap import PGPUClassifier
from probgap.exceptions import (
    BoundaryWarning,
    InvalidInputError,
    MissingLibraryError,
    ProbgapError,
    ProbgapWarning,
    UnreliableFitWarning,
)


def test_errors_and_warnings_can_be_caught_by_their_public_names():
    assert issubclass(BoundaryWarning, ProbgapWarning)
    assert issubclass(ProbgapWarning, UserWarning)
    assert issubclass(InvalidInputError, ProbgapError)
    with pytest.raises(InvalidInputError, match=r"Got one class"):
        PGPUClassifier().fit([[0.0], [1.0]], [0, 0])


@pytest.mark.parametrize(
    "error",
    [
        MissingLibraryError(library="jinja2", extra="report", purpose="reports"),
        UnreliableFitWarning("few labels", code="few"),
    ],
)
def test_errors_come_back_from_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)
