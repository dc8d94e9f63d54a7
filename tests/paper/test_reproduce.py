"""`python -m reproduce --quick`, and the numbers of the figures against closed forms."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from reproduce.__main__ import run
from reproduce.curves import figure_1, figure_f_dp, trade_off, trade_off_of_pair
from reproduce.drawing import as_svg, draw_figure_1
from reproduce.erm_rows import STRONGLY_CONVEX, linear_excess, two_points
from reproduce.rates import Experiment, Task, fit, summarize
from reproduce.run import EXPERIMENTS, TABLE_1, TABLE_2, run_task
from reproduce.tightness import bottleneck, lens_radius, tightness
from scipy.stats import norm

VARIABLES = {"n", "d", "epsilon", "local", "bits"}


def test_a_quick_run_writes_pictures_page_and_numbers(tmp_path: Path) -> None:
    """One test, so that parallel test runs do the work once."""
    assert run(tmp_path, quick=True) == tmp_path / "reproduce.html"
    numbers = json.loads((tmp_path / "reproduce.json").read_text(encoding="utf-8"))
    every_figure_and_table_row_has_a_picture(tmp_path)
    the_page_stands_alone_and_its_ids_are_unique(tmp_path)
    every_curve_has_a_slope_beside_the_papers_power(numbers)
    every_disagreement_is_listed_with_a_reason(tmp_path, numbers)
    printed_purification_costs_more_than_before_and_than_the_modern_one(numbers)


def every_figure_and_table_row_has_a_picture(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    tables = {
        f"{table}_{row.key.removeprefix('table_2_')}.svg"
        for table, rows in (("table_1", TABLE_1), ("table_2", TABLE_2))
        for row in rows
    }
    others = {"figure_1.svg", "f_dp.svg", "tightness.svg", "reproduce.html", "reproduce.json"}
    assert names == tables | others
    for name in names:
        if name.endswith(".svg"):
            root = ElementTree.fromstring((written / name).read_text(encoding="utf-8"))
            assert root.tag.endswith("svg")


def the_page_stands_alone_and_its_ids_are_unique(written: Path) -> None:
    text = (written / "reproduce.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 3 + len(TABLE_1) + len(TABLE_2)
    assert "<script" not in text
    assert "<link" not in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text.replace("xlink:", ""))
    ids = Counter(re.findall(r'\bid="([^"]+)"', text))
    assert not [name for name, count in ids.items() if count > 1]
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert referred <= set(ids)


def every_curve_has_a_slope_beside_the_papers_power(numbers: dict[str, Any]) -> None:
    assert numbers["quick"] is True
    assert set(numbers["figures"]) == {"figure_1", "f_dp", "tightness"}
    assert [row["key"] for row in numbers["table_1"]] == [row.key for row in TABLE_1]
    assert [row["key"] for row in numbers["table_2"]] == [row.key for row in TABLE_2]
    for row in (*numbers["table_1"], *numbers["table_2"]):
        experiment = EXPERIMENTS[row["key"]]
        found = {(curve["variant"], curve["variable"]) for curve in row["series"]}
        assert found == {(v, x) for v in experiment.variants for x in experiment.quick}
        for curve in row["series"]:
            assert curve["variable"] in VARIABLES
            assert len(curve["values"]) == len(curve["errors"]) == len(curve["deviations"])
            assert all(error > 0 for error in curve["errors"])
            power = experiment.exponents[curve["variant"]][curve["variable"]]
            assert curve["exponent"] == power
            slope = fit(np.array(curve["values"]), np.array(curve["errors"]))
            assert curve["slope"] == pytest.approx(slope)
            assert curve["agrees"] or curve["reason"]


def every_disagreement_is_listed_with_a_reason(written: Path, numbers: dict[str, Any]) -> None:
    curves = [c for t in ("table_1", "table_2") for row in numbers[t] for c in row["series"]]
    assert len(numbers["disagreements"]) == sum(c["agrees"] is False for c in curves)
    assert all(row["reason"] for row in numbers["disagreements"])
    assert "Where the measurements differ" in (written / "reproduce.html").read_text("utf-8")


def printed_purification_costs_more_than_before_and_than_the_modern_one(
    numbers: dict[str, Any],
) -> None:
    """At one and the same point, with errors in the order that theory predicts."""
    for key in ("dp_erm_strongly_convex", "linear_regression", "mode", "local_sensitivity"):
        row = next(row for row in numbers["table_1"] if row["key"] == key)
        last = {c["variant"]: c["errors"][-1] for c in row["series"] if c["variable"] == "epsilon"}
        assert last["after"] > last["modern"]
        assert last["after"] > last["before"]


def gaussian_delta(epsilon: float, mu: float) -> float:
    away = epsilon / mu
    upper, lower = norm.cdf(-away + mu / 2), norm.cdf(-away - mu / 2)
    return float(upper - math.exp(epsilon) * lower)


def test_figure_1_is_the_analytic_gaussian_and_the_laplace_variance() -> None:
    data: Any = figure_1(points=6)
    single, double = data["relations"].values()
    assert (single["laplace"], double["laplace"]) == (2.0, 8.0)
    for power, variance in zip(data["log10_delta"], single["gaussian"], strict=True):
        if power > -12:  # below, the closed form in floats is noise
            assert gaussian_delta(1, 1 / math.sqrt(variance)) == pytest.approx(10**power, rel=1e-4)
    assert double["gaussian"] == pytest.approx([2 * v for v in single["gaussian"]])
    for found, mu in ((single, math.sqrt(1 / 2)), (double, math.sqrt(1 / 4))):
        crossing = 10 ** found["crossing_log10_delta"]
        assert crossing == pytest.approx(gaussian_delta(1, mu), rel=1e-9)


def test_the_trade_off_curves_are_those_of_the_closed_form() -> None:
    data: Any = figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1, points=101)
    alpha = np.array(data["alpha"])
    for key, epsilon, delta in (("approximate", 1, 0.1), ("pure", 1, 0), ("pure_total", 1.5, 0)):
        formula = [
            max(0, 1 - delta - math.exp(epsilon) * a, math.exp(-epsilon) * (1 - delta - a))
            for a in alpha
        ]
        assert data[key] == pytest.approx(formula)
    assert np.all(np.array(data["purified"]) >= np.array(data["pure"]) - 1e-12)
    assert data["largest_purified_excess"] <= 0


def test_the_papers_order_of_the_trade_off_curves_fails_beyond_the_crossing() -> None:
    data: Any = figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1, points=101)
    cross = data["crossing_alpha"]
    at = np.array([cross / 2, cross, 2 * cross])
    approximate = trade_off(at, epsilon=1.0, delta=0.1)
    pure = trade_off(at, epsilon=1.5, delta=0.0)
    assert approximate[0] < pure[0]
    assert approximate[1] == pytest.approx(pure[1])
    assert approximate[2] > pure[2]  # the paper says <=


def test_neyman_pearson_finds_randomized_response_and_a_revealing_outcome() -> None:
    share = math.e / (1 + math.e)
    alpha = np.linspace(0, 1, 11)
    found = trade_off_of_pair(np.array([share, 1 - share]), np.array([1 - share, share]), alpha)
    assert found == pytest.approx(trade_off(alpha, epsilon=1.0, delta=0.0))
    leak = trade_off_of_pair(np.array([0.0, 1.0]), np.array([0.3, 0.7]), alpha)
    assert leak == pytest.approx(0.7 * (1 - alpha))


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_lens_radius_solves_the_volume_equation(dimension: int) -> None:
    radius = lens_radius(0.25, dimension=dimension)
    if dimension == 1:
        assert radius == pytest.approx(0.5)
    else:  # two discs of radii 1 and t, centers 1 apart
        t = radius
        area = (
            t * t * math.acos(t / 2)
            + math.acos(1 - t * t / 2)
            - math.sqrt((2 - t) * t * t * (2 + t)) / 2
        )
        assert area / math.pi == pytest.approx(0.25**2, rel=1e-9)


def test_no_bound_is_below_the_transport_distance_of_the_example() -> None:
    data: Any = tightness(radius=0.25, dimensions=(1, 2, 5, 50), grids={1: 101})
    assert data["exact"] == [0.25] * 4
    for name, factor in (("theorem_w", 2), ("paper_ball", 4), ("paper_convex", 8)):
        assert data[name] == [factor * 0.25] * 4
    assert all(0.25 <= lens <= 0.5 + 1e-12 for lens in data["lens"])
    assert data["log_total_variation"] == pytest.approx([d * math.log(0.25) for d in (1, 2, 5, 50)])


@pytest.mark.parametrize(("dimension", "cells"), [(1, 101), (2, 21), (3, 9)])
def test_matching_on_a_grid_finds_the_radius_of_the_hole(dimension: int, cells: int) -> None:
    transport, variation, spacing = bottleneck(0.4, dimension=dimension, cells=cells)
    assert 0.4 - spacing <= transport <= 0.4
    assert variation == pytest.approx(0.4**dimension, rel=0.5)


def test_a_power_law_is_fitted_exactly_and_the_worst_instance_counts() -> None:
    experiment = _experiment(exponents={"a": {"n": -1}}, reasons={"n": "because"})
    runs = {float(n): [[1 / n**2, 3 / n**2], [1 / n**2, 3 / n**2]] for n in (1, 2, 4)}
    series = summarize(experiment, "a", "n", runs)
    assert series.errors == pytest.approx([3, 3 / 4, 3 / 16])
    assert series.slope == pytest.approx(-2)
    assert (series.agrees, series.reason) == (False, "because")


def test_equal_tasks_give_equal_errors_and_other_repeats_others() -> None:
    task = Task(experiment=STRONGLY_CONVEX.key, variant="after", variable="d", value=3, repeats=2)
    first, second = run_task(task)[1], run_task(task)[1]
    assert first == second
    assert first[0] != first[1]


def test_the_two_point_problem_has_its_minimum_at_the_boundary() -> None:
    features, labels, length = two_points(1001, 3)
    mean = (features * labels[:, None]).mean(axis=0)
    assert np.linalg.norm(mean) == pytest.approx(length)
    assert linear_excess(mean / length / 2, length) == pytest.approx(0)
    assert linear_excess(np.zeros(3), length) == pytest.approx(length / 2)


def test_equal_numbers_give_equal_pictures() -> None:
    data: Any = figure_1(points=4)
    assert as_svg(draw_figure_1(data), "one") == as_svg(draw_figure_1(data), "one")


def _experiment(**changes: Any) -> Experiment:
    defaults: dict[str, Any] = {
        "key": "test",
        "problem": "a problem",
        "label": "thm",
        "quantity": "error",
        "setting": "none",
        "variants": {"a": "a mechanism"},
        "formulas": {"a": "1/n"},
        "exponents": {},
        "base": {"n": 1},
        "sweeps": {"n": (1, 2, 4)},
        "quick": {"n": (1, 2)},
        "repeats": 2,
        "quick_repeats": 1,
        "measure": lambda variant, point, label: [1.0],
    }
    return Experiment(**{**defaults, **changes})
