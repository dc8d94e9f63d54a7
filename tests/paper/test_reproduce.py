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
from reproduce.curves import (
    figure_1,
    figure_f_dp,
    pair_vertices,
    trade_off,
    trade_off_vertices,
)
from reproduce.drawing import as_svg, draw_figure_1
from reproduce.erm_rows import STRONGLY_CONVEX, linear_excess, two_points
from reproduce.figures import PICTURES
from reproduce.page import cells
from reproduce.rates import Task
from reproduce.report import IMAGES, RESULTS, report
from reproduce.run import EXPERIMENTS, run_task
from reproduce.tightness import bottleneck, lens_radius, tightness
from scipy.stats import norm

SLOPES = ("slope", "slope_error", "predicted_slope", "verdict")


def test_a_quick_run_writes_pictures_pages_and_numbers_but_no_slope(tmp_path: Path) -> None:
    """One test, so that parallel test runs do the work once."""
    out, root = tmp_path / "out", tmp_path / "root"
    assert run(out, quick=True, keep=root) == out / "reproduce.html"
    numbers = json.loads((out / "reproduce.json").read_text(encoding="utf-8"))
    kept_page = report(json.loads((root / RESULTS).read_text(encoding="utf-8")))
    every_figure_and_table_row_has_a_picture(out, root / "docs", kept_page)
    the_page_stands_alone_and_its_ids_are_unique(out)
    every_curve_is_there_without_a_slope(numbers)
    the_pages_show_the_numbers_and_no_slope(out, kept_page, numbers)
    printed_purification_costs_more_than_before_and_than_the_modern_one(numbers)


def every_figure_and_table_row_has_a_picture(out: Path, docs: Path, kept_page: str) -> None:
    pictures = {f"{key}.svg" for key in (*(found.key for found in PICTURES), *EXPERIMENTS)}
    assert {path.name for path in out.iterdir()} == pictures | {"reproduce.html", "reproduce.json"}
    assert {path.name for path in (docs / IMAGES).iterdir()} == pictures
    for name in pictures:
        root = ElementTree.fromstring((out / name).read_text(encoding="utf-8"))
        assert root.tag.endswith("svg")
        assert f"]({IMAGES}/{name})" in kept_page


def the_page_stands_alone_and_its_ids_are_unique(written: Path) -> None:
    text = (written / "reproduce.html").read_text(encoding="utf-8")
    assert text.count("<svg") == len(PICTURES) + len(EXPERIMENTS)
    assert "<script" not in text
    assert "<link" not in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text.replace("xlink:", ""))
    ids = Counter(re.findall(r'\bid="([^"]+)"', text))
    assert not [name for name, count in ids.items() if count > 1]
    referred = set(re.findall(r'(?:href="|url\()#([^")]+)', text))
    assert referred <= set(ids)


def every_curve_is_there_without_a_slope(numbers: dict[str, Any]) -> None:
    assert numbers["quick"] is True
    assert [found["key"] for found in numbers["figures"]] == [found.key for found in PICTURES]
    rows = [row for table in numbers["tables"].values() for row in table]
    assert [row["key"] for row in rows] == list(EXPERIMENTS)
    for row in rows:
        experiment = EXPERIMENTS[row["key"]]
        found = {(curve["variant"], curve["variable"]) for curve in row["series"]}
        assert found == {(v, x) for v in experiment.variants for x in experiment.quick}
        for curve in row["series"]:
            assert len(curve["values"]) == len(curve["errors"]) == len(curve["deviations"])
            assert all(error > 0 for error in curve["errors"])
            assert all(curve[name] is None for name in SLOPES)


def the_pages_show_the_numbers_and_no_slope(
    out: Path, kept_page: str, numbers: dict[str, Any]
) -> None:
    pages = [(out / "reproduce.html").read_text(encoding="utf-8"), kept_page]
    for row in (row for table in numbers["tables"].values() for row in table):
        for curve in row["series"]:
            for page in pages:
                assert cells(row, curve)[-1] in page
    for page in pages:
        assert "slopes agree" not in page
        assert "verdict" not in page


def printed_purification_costs_more_than_before_and_than_the_modern_one(
    numbers: dict[str, Any],
) -> None:
    """At one and the same point, with errors in the order that theory predicts."""
    for key in ("dp_erm_strongly_convex", "linear_regression", "mode", "local_sensitivity"):
        row = next(row for row in numbers["tables"]["table_1"] if row["key"] == key)
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


def along(vertices: Any, alpha: Any) -> Any:
    return np.interp(alpha, *np.array(vertices).T)


def test_the_trade_off_curves_are_those_of_the_closed_form() -> None:
    data: Any = figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1)
    alpha = np.linspace(0, 1, 101)
    for key, epsilon, delta in (("approximate", 1, 0.1), ("pure", 1, 0), ("pure_total", 1.5, 0)):
        formula = [
            max(0, 1 - delta - math.exp(epsilon) * a, math.exp(-epsilon) * (1 - delta - a))
            for a in alpha
        ]
        assert along(data[key], alpha) == pytest.approx(formula)
    assert np.all(along(data["purified"], alpha) >= along(data["pure"], alpha) - 1e-12)
    assert data["largest_purified_excess"] <= 0


def test_the_kinks_of_the_trade_off_curves_are_where_two_of_their_lines_meet() -> None:
    data: Any = figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1)
    for key, epsilon, delta in (("approximate", 1, 0.1), ("pure", 1, 0), ("pure_total", 1.5, 0)):
        (start, top), (kink, height), *_, (end, bottom) = data[key]
        assert (start, top, end, bottom) == (0, 1 - delta, 1, 0)
        assert height == pytest.approx(1 - delta - math.exp(epsilon) * kink)
        assert height == pytest.approx(math.exp(-epsilon) * (1 - delta - kink))
    assert data["approximate"][2] == (0.9, 0)  # from here on the test that always rejects is best
    weight, share = data["mixing_weight"], math.e / (1 + math.e)
    told = weight / 4  # of "it is D'" under D; then "probably D'" is rejected, too
    guessed = told + (1 - weight) * 0.9 * (1 - share) + weight / 4
    vertices = np.array(data["purified"])
    assert vertices[:, 0] == pytest.approx([0, told, guessed, vertices[1, 1], 1])
    assert vertices[:, 1] == pytest.approx(vertices[::-1, 0])  # the pair is symmetric


def test_the_papers_order_of_the_trade_off_curves_fails_beyond_the_crossing() -> None:
    data: Any = figure_f_dp(epsilon=1.0, extra_epsilon=0.5, delta=0.1)
    cross = data["crossing_alpha"]
    at = np.array([cross / 2, cross, 2 * cross])
    approximate = trade_off(at, epsilon=1.0, delta=0.1)
    pure = trade_off(at, epsilon=1.5, delta=0.0)
    assert approximate[0] < pure[0]
    assert approximate[1] == pytest.approx(pure[1])
    assert approximate[1] == pytest.approx(data["crossing_beta"])
    assert approximate[2] > pure[2]  # the paper says <=


def test_neyman_pearson_finds_randomized_response_and_a_revealing_outcome() -> None:
    share = math.e / (1 + math.e)
    alpha = np.linspace(0, 1, 11)
    found = pair_vertices(np.array([share, 1 - share]), np.array([1 - share, share]))
    assert np.array(found) == pytest.approx(np.array(trade_off_vertices(epsilon=1.0, delta=0.0)))
    leak = pair_vertices(np.array([0.0, 1.0]), np.array([0.3, 0.7]))
    assert along(leak, alpha) == pytest.approx(0.7 * (1 - alpha))
    same = pair_vertices(np.array([0.5, 0.5]), np.array([0.5, 0.5]))
    assert same == [(0, 1), (1, 0)]  # one ratio, no kink


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
