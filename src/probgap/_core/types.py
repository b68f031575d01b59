"""Type aliases for the arrays that the steps pass to each other."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]  # indices of rows
Array: TypeAlias = NDArray[np.float64]  # dense, of two dimensions
Single: TypeAlias = NDArray[np.float32]
Matrix: TypeAlias = Any  # what scikit-learn takes as samples: dense or sparse
