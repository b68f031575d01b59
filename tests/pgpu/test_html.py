"""What notebooks show: scikit-learn's diagram, and below it what the fit found."""

from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn

from probgap import PGPUClassifier, PGPUClassifierCV
from probgap.boundary import Boundary
from probgap.relabel import relabel
from probgap.reweight import KernelMeanMatching, KMMResult, kernel_mean_matching


class Table(HTMLParser):
    """Reads the facts of a table, and checks that tags are closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.cells = [], []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):  # noqa: ARG002 (the parser passes them)
        self.open.append(tag)
        if tag in ("th", "td", "caption"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.cells[-1] += data

    @property
    def caption(self):
        return self.cells[0]

    @property
    def facts(self):
        return dict(zip(self.cells[1::2], self.cells[2::2], strict=True))


def table_of(model):
    html = model._repr_html_()
    return Table(html[html.rindex("<table") :])


@pytest.fixture(scope="module")
def data(square):
    X, _, _, s = square
    return X[:150], s[:150]


def test_an_unfitted_model_shows_the_diagram_alone():
    html = PGPUClassifier()._repr_html_()
    assert "what the fit found" not in html
    assert "sk-container" in html


@pytest.mark.parametrize(
    "model",
    [
        PGPUClassifier(random_state=0),
        PGPUClassifier(boundary=-0.5, reweight=KernelMeanMatching(), random_state=0),
        PGPUClassifier(reweight=KernelMeanMatching(), random_state=0),
        PGPUClassifierCV(boundaries=[-0.8, -0.6], cv=3, random_state=0),
    ],
)
def test_a_fitted_model_shows_what_it_found_below(model, data):
    X, s = data
    model.fit(X, s)
    assert model.n_labelled_ == s.sum()
    html = model._repr_html_()
    assert "sk-container" in html
    assert model._repr_mimebundle_()["text/html"].endswith(
        html[html.rindex("<table") :]
    )
    shown = table_of(model)
    assert shown.caption == f"{type(model).__name__}: what the fit found"
    facts = shown.facts
    assert facts["labelled"].startswith(f"{s.sum()} (")
    assert model.boundary_.rule in facts["boundary"]
    assert facts["left out of training"].startswith(str(model.relabelling_.n_undecided))
    if model.reweight is None:
        assert facts["weights"] == "all 1 (reweight=None)"
    else:
        assert "effective sample size" in facts["weights"]


def test_text_display_stays_text(square_model):
    with sklearn.config_context(display="text"):
        assert not hasattr(square_model, "_repr_html_")
        assert set(square_model._repr_mimebundle_()) == {"text/plain"}


def test_a_boundary_says_if_it_was_moved_and_everything_is_escaped():
    harmful = "<script>alert('x')</script>\"&"
    html = Boundary(-0.5, harmful, np.nan, 5, 3, 2, fallback=harmful)._repr_html_()
    assert "<script" not in html
    facts = Table(html).facts
    assert facts["rule"] == facts["fallback"] == harmful
    assert facts["undecided"] == "3 (30.0%)"
    assert facts["value"] == "\N{MINUS SIGN}0.5"
    assert facts["spread"] == "nan"
    assert "fallback" not in Boundary(-0.5, "auto", 0.1, 5, 3, 2)._repr_html_()


def test_a_relabelling_is_counted():
    result = relabel([-0.9, -0.5, -0.5, 0.3], [0, 0, 1, 0], lower=-0.8)
    assert Table(result._repr_html_()).facts == {
        "samples": "4",
        "positive": "2 (50.0%)",
        "negative": "1 (25.0%)",
        "undecided": "1 (25.0%)",
        "counted as positive": "2.0",
    }


def test_a_matching_shows_its_evidence(rng):
    result = kernel_mean_matching(rng.normal(size=(50, 2)), rng.normal(size=(40, 2)))
    facts = Table(result._repr_html_()).facts
    assert facts["converged"] == "yes"
    assert facts["weights"].startswith("50, largest ")
    bare = KMMResult(np.empty(0), 0.0, 0.0, 0.0, 0, False, "x", None)
    facts = Table(bare._repr_html_()).facts
    assert facts["kernel width"] == "none"
    assert facts["converged"] == "no"
    assert facts["duality gap"] == "inf"
