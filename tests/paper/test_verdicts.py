"""Slopes, their errors, and the verdict on them: agrees, explained, unexplained."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from reproduce.page import cells, headline, page
from reproduce.rates import Experiment, Series, fit, summarize, verdict
from reproduce.report import RESULTS, kept, report
from reproduce.run import finite, row_as_json, summary_of

ROOT = Path(__file__).parents[2]
VALUES = (1.0, 2.0, 4.0, 8.0)


def power_law(power: float, *, noise: float = 0.0, repeats: int = 2) -> dict[float, Any]:
    generator = np.random.default_rng(1)
    return {
        n: (n**power * np.exp(noise * generator.normal(size=(repeats, 1)))).tolist() for n in VALUES
    }


def judged(power: float, *, predicted: float | None = None, paper: float = -1.0) -> Series:
    formula = None if predicted is None else lambda variant, point: 3 * point["n"] ** predicted
    row = _experiment(exponents={"a": {"n": paper}}, predicted=formula)
    return summarize(row, "a", "n", power_law(power))


def test_a_power_law_is_fitted_exactly_and_the_worst_instance_counts() -> None:
    runs = {float(n): [[1 / n**2, 3 / n**2], [1 / n**2, 3 / n**2]] for n in (1, 2, 4)}
    series = summarize(_experiment(exponents={"a": {"n": -1}}), "a", "n", runs)
    assert series.errors == pytest.approx([3, 3 / 4, 3 / 16])
    assert series.slope == pytest.approx(-2)
    assert series.slope_error == pytest.approx(0, abs=1e-12)
    assert series.verdict == "unexplained"


def test_a_slope_within_the_tolerance_agrees_whatever_is_predicted() -> None:
    assert judged(-1.14).verdict == "agrees"
    assert judged(-0.86, predicted=-3.0).verdict == "agrees"
    assert judged(-0.84).verdict == "unexplained"


def test_two_standard_errors_agree_too() -> None:
    assert verdict(slope=-1.5, error=0.25, exponent=-1) == "agrees"
    assert verdict(slope=-1.5, error=0.24, exponent=-1) == "unexplained"


def test_a_prediction_of_the_same_sign_and_size_explains_and_says_its_slope() -> None:
    series = judged(-1.5, predicted=-1.4)
    assert series.verdict == "explained"
    assert series.predicted_slope == pytest.approx(-1.4)
    assert series.words == "explained: at these parameters the exact formula gives −1.40"


@pytest.mark.parametrize(
    "predicted",
    [
        pytest.param(-0.5, id="the other direction"),
        pytest.param(-1.0, id="the paper's own"),
        pytest.param(-1.3, id="the right direction, too small"),
        pytest.param(-1.7, id="the right direction, too large"),
        pytest.param(None, id="none"),
    ],
)
def test_any_other_prediction_leaves_a_slope_unexplained(predicted: float | None) -> None:
    assert judged(-1.5, predicted=predicted).verdict == "unexplained"


def test_a_prediction_on_the_other_side_explains_nothing_even_if_it_is_near() -> None:
    assert verdict(slope=-1.16, error=0.05, exponent=-1, predicted=-0.99) == "unexplained"
    wrong = verdict(slope=-1.16, error=0.05, exponent=-1.005, predicted=-1.004)
    assert wrong == "unexplained"


def test_a_formula_without_a_value_predicts_nothing() -> None:
    row = _experiment(predicted=lambda variant, point: math.nan)
    series = summarize(row, "a", "n", power_law(-1))
    assert (series.predicted, series.predicted_slope) == (None, None)


def test_the_slope_error_is_that_of_independent_repetitions() -> None:
    """Of least squares on means of r log-normal errors, known in closed form to first order."""
    noise, repeats = 0.1, 4000
    runs = power_law(-1, noise=noise, repeats=repeats)
    x = np.log(VALUES)
    known = noise / math.sqrt(repeats * ((x - x.mean()) ** 2).sum())
    found = summarize(_experiment(), "a", "n", runs).slope_error
    assert found == pytest.approx(known, rel=0.15)


def test_two_repeats_are_not_taken_for_more_than_they_say() -> None:
    """Two numbers at distance 2s resampled: the mean's variance is s²/2, an unbiased one is s²."""
    runs = {n: [[1.0 - 0.01], [1.0 + 0.01]] for n in VALUES}
    series = summarize(_experiment(), "a", "n", runs)
    assert series.deviations == pytest.approx([0.01] * len(VALUES), rel=0.15)


def test_a_quick_curve_has_no_slope() -> None:
    row = _experiment(exponents={"a": {"n": -1}}, predicted=lambda variant, point: 1.0)
    series = summarize(row, "a", "n", power_law(-1), quick=True)
    found = (series.slope, series.slope_error, series.predicted_slope, series.verdict)
    assert found == (None, None, None, None)
    assert series.predicted == [1.0] * len(VALUES)


def test_both_pages_show_the_numbers_of_the_json_file() -> None:
    row = _experiment(exponents={"a": {"n": -1}, "b": {"n": -1}, "c": {"n": -1}})
    powers = {"a": -1.0123, "b": -1.5, "c": -2.75}
    formula = row.__class__(**{**vars(row), "predicted": lambda v, p: p["n"] ** (powers[v] + 0.07)})
    series = [
        summarize(formula, variant, "n", power_law(power)) for variant, power in powers.items()
    ]
    series[2] = summarize(row, "c", "n", power_law(powers["c"]))
    tables = {"table_1": [row_as_json(formula, series, "Row 1", quick=False)]}
    numbers: Any = {
        "version": "0",
        "command": "make reproduce KEEP=1",
        "commit": "abc",
        "machine": {"cores": 2, "processor": "a processor", "python": "3.11"},
        "quick": False,
        "seconds": 12.0,
        "figures": [],
        "tables": tables,
        "summary": summary_of(tables),
    }
    numbers = json.loads(json.dumps(finite(numbers)))
    words = "1 of 3 slopes agree; these do not (1 explained by the exact formula, 1 unexplained):"
    assert headline(numbers["summary"]) == words
    found = numbers["tables"]["table_1"][0]
    for text in (page(numbers, {"test": "<svg/>"}), report(kept(numbers))):
        assert words in text
        for curve in found["series"]:
            assert f"{curve['slope']:+.2f}".replace("-", "−") in text
            assert f"± {curve['slope_error']:.2f}" in text
            for cell in cells(found, curve):
                assert cell in text
        assert "explained: at these parameters the exact formula gives −1.43" in text
        assert "mended" not in text
    assert fit(np.array(VALUES), np.array(found["series"][0]["errors"])) == pytest.approx(-1.0123)


def test_the_kept_report_counts_its_own_verdicts_and_has_its_pictures() -> None:
    """The page of the site is of a full run: its first sentence is the sum of its tables."""
    text = report(json.loads((ROOT / RESULTS).read_text(encoding="utf-8")))
    found = re.search(
        r"\*\*(\d+) of (\d+) slopes agree; these do not "
        r"\((\d+) explained by the exact formula, (\d+) unexplained\):\*\*",
        text,
    )
    assert found is not None
    _, *tables = text.split("\n## ")
    verdicts = Counter(
        word
        for table in tables
        for word in re.findall(r"\| (agrees|explained|unexplained)[^|]*\|$", table, re.MULTILINE)
    )
    agree, slopes, explained, unexplained = map(int, found.groups())
    assert (verdicts["agrees"], verdicts.total()) == (agree, slopes)
    assert (verdicts["explained"], verdicts["unexplained"]) == (explained, unexplained)
    for name in re.findall(r"\]\((images/[^)]+)\)", text):
        assert (ROOT / "docs" / name).exists()


def _experiment(**changes: Any) -> Experiment:
    defaults: dict[str, Any] = {
        "key": "test",
        "problem": "a problem",
        "label": "thm",
        "quantity": "error",
        "setting": "none",
        "variants": {"a": "a mechanism", "b": "another", "c": "a third"},
        "formulas": {"a": "1/n", "b": "1/n", "c": "1/n"},
        "exponents": {},
        "base": {"n": 1},
        "sweeps": {"n": (1, 2, 4)},
        "quick": {"n": (1, 2)},
        "repeats": 2,
        "quick_repeats": 1,
        "measure": lambda variant, point, label: [1.0],
    }
    return Experiment(**{**defaults, **changes})


def test_a_prediction_has_to_be_half_as_far_off_to_explain_anything() -> None:
    """A large standard error must not let a prediction pass that all but agrees with the paper."""
    told = {"slope": -1.7, "error": 0.14, "exponent": -2.0}
    assert verdict(**told, predicted=-1.86) == "unexplained"
    assert verdict(**told, predicted=-1.84) == "explained"
