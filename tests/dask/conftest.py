import numpy as np
import pytest

pytest.importorskip("dask.array", reason="dask is not installed")
pytest.importorskip("distributed", reason="distributed is not installed")


def draw(n, seed=0, n_features=4):
    """Draw classes that overlap, easy positives labelled first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    posterior = 1.0 / (1.0 + np.exp(-3.0 * X[:, 0] - X[:, 1] * X[:, 2] + 1.0))
    y = rng.random(n) < posterior
    s = y & (rng.random(n) < 0.8 * posterior)
    return X, y.astype(int), s.astype(int)


@pytest.fixture(scope="session")
def table():
    return draw(1500)


@pytest.fixture(autouse=True)
def one_process():
    """Compute here and now, unless a test starts a cluster."""
    import dask  # noqa: PLC0415 (may be absent)

    with dask.config.set(scheduler="synchronous"):
        yield
