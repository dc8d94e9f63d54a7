"""The advisor: complete tables from public numbers, remedies, pictures, honest forecasts."""

from __future__ import annotations

import importlib
import inspect
import math
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import zerodelta as zd
from zerodelta.regression.classes import NOISELESS_ERROR
from zerodelta.regression.objective import Shape, plan_logistic
from zerodelta.tasks.advise import advise, smallest_rows
from zerodelta.tasks.distributions import histogram_methods
from zerodelta.tasks.registry import TASKS
from zerodelta.tasks.task import UNKNOWN_ERROR, Forecast

ROOT = Path(__file__).resolve().parents[2]

ASKED: dict[str, dict[str, Any]] = {
    "mean": {"n": 10_000, "dimension": 5, "epsilon": 1, "bounds": (0, 100)},
    "histogram": {"universe": 20, "epsilon": 1},
    "select": {"options": 10, "epsilon": 1},
    "mode": {"n": 1000, "universe": 100, "epsilon": 1},
    "quantile": {"n": 1000, "epsilon": 1},
    "median": {"n": 1000, "epsilon": 1, "grid": 101},
    "trimmed_mean": {"n": 1000, "trim": "0.1", "bounds": (0, 1), "spread": "0.1", "epsilon": 1},
    "queries": {"n": 1000, "domain": {"a": 2, "b": 3, "c": 2}, "epsilon": 1},
    "synthesize": {"n": 1000, "domain": {"a": 2, "b": 3}, "workload": 1, "epsilon": 1},
    "linear": {"n": 10_000, "dimension": 3, "epsilon": 1},
    "logistic": {"n": 10_000, "dimension": 3, "epsilon": 1},
    "multinomial": {"n": 10_000, "dimension": 3, "classes": 4, "epsilon": 1},
    "classifier": {"n": 1000, "dimension": 3, "classes": 4, "epsilon": 1},
    "covariance": {"n": 10_000, "dimension": 4, "epsilon": 1, "bounds": (0, 100)},
    "correlation": {"n": 10_000, "dimension": 4, "epsilon": 1, "bounds": (0, 100)},
    "decision_tree": {"n": 1000, "thresholds": 6, "epsilon": 1},
    "pca": {"n": 10_000, "dimension": 4, "epsilon": 1, "data_norm": 3},
    "kmeans": {"n": 10_000, "dimension": 2, "clusters": 4, "epsilon": 1},
    "select_features": {"n": 10_000, "dimension": 20, "size": 3, "epsilon": 1},
    "study": {"questions": 100, "publish": 16, "epsilon": 1},
    "count": {"n": 1000, "epsilon": 1},
    "sum": {"n": 1000, "bounds": (0, 100), "epsilon": 1},
    "variance": {"n": 1000, "bounds": ([0, 0], [1, 1]), "epsilon": 1},
    "std": {"n": 1000, "bounds": (0, 100), "epsilon": 1},
    "table": {
        "n": 10_000,
        "of": {"age": ["mean", "variance"], "pay": "sum"},
        "by": {"city": 4, "age": zd.bins([0, 18, 120])},
        "bounds": {"age": (0, 120), "pay": (0, 9000)},
        "epsilon": 1,
    },
    "quantiles": {"n": 1000, "q": [0.1, 0.5, 0.9], "epsilon": 1, "grid": 101},
    "cdf": {"n": 1000, "at": [10, 20, 30], "epsilon": 1},
    "top_k": {"n": 1000, "universe": 500, "k": 5, "epsilon": 1},
    "heavy_hitters": {"n": 1000, "universe": zd.text(5, alphabet="abc"), "epsilon": 1},
    "vote": {"n": 1000, "options": 8, "epsilon": 1},
    "select_model": {"n": 10_000, "options": 8, "epsilon": 1, "least_rows": 40},
}

FORECASTS = {name: task.forecast for name, task in TASKS.items() if task.forecast is not None}

ALONE = {
    "select",
    "quantile",
    "median",
    "count",
    "sum",
    "variance",
    "std",
    "table",
    "cdf",
    "heavy_hitters",
    "decision_tree",
}
"""Tasks for which one method is known to be the best, whatever the numbers."""


def test_every_task_is_asked_about_here() -> None:
    assert set(ASKED) == set(FORECASTS)


@pytest.mark.parametrize("task", ASKED)
def test_every_task_has_candidates_best_first_with_reasons(task: str) -> None:
    advice = advise(task, **ASKED[task])
    errors = [method.error for method in advice]
    assert (len(advice) == 1) == (task in ALONE)
    assert errors == sorted(errors)
    assert advice.best is next(iter(advice))
    assert 0 < advice.best.error < math.inf
    assert all(method.name and method.spends and method.why for method in advice)


@pytest.mark.parametrize("task", ASKED)
def test_print_shows_all_of_it(task: str) -> None:
    advice = advise(task, **ASKED[task])
    text = str(advice)
    for method in advice:
        assert method.name in text
        assert method.spends in text
        assert method.why in text
    assert advice.reason in text
    assert "{" not in advice.call
    assert repr(advice) == text


@pytest.mark.parametrize("task", ASKED)
def test_more_privacy_is_never_predicted_to_cost_nothing(task: str) -> None:
    asked = ASKED[task]
    strict, loose = (advise(task, **{**asked, "epsilon": e}) for e in ("1/4", 4))
    assert strict.best.error > loose.best.error


@pytest.mark.parametrize("task", [t for t, a in ASKED.items() if "n" in a and t != "mode"])
def test_more_rows_are_never_predicted_to_hurt(task: str) -> None:
    few, many = (advise(task, **{**ASKED[task], "n": n}).best.error for n in (1000, 30_000))
    assert many <= few * 1.0001


def test_the_numbers_are_those_that_auto_and_releases_use() -> None:
    assert tuple(advise("histogram", **ASKED["histogram"])) == histogram_methods(
        epsilon=1, universe=20
    )
    rows = np.linspace(0, 100, 10_000).reshape(-1, 1)
    released = zd.mean(rows, bounds=(0, 100), epsilon=1)
    assert released.error == advise("mean", n=10_000, epsilon=1, bounds=(0, 100)).best.error
    planned = plan_logistic(Shape.of(rows=10_000, dimension=3, epsilon=1))
    assert advise("logistic", **ASKED["logistic"]).best.error == planned.predicted_error


def test_targets_of_another_unit_have_errors_of_that_unit() -> None:
    unit = advise("linear", **ASKED["linear"]).best.error
    wide = advise("linear", **ASKED["linear"], bounds_y=(0, 200)).best.error
    assert wide == pytest.approx(unit * 100**2)


def test_a_study_pays_from_its_break_even_on() -> None:
    def names(questions: int) -> list[str]:
        return [m.name for m in advise("study", questions=questions, publish=16, epsilon=1)]

    switch = next(k for k in range(1, 100) if names(k)[0] == "study")
    assert 2 < switch < 12
    assert names(switch - 1)[0] == "pure composition"
    assert f"from {switch} questions" in advise("study", questions=5, publish=16, epsilon=1).reason
    larger = advise("study", questions=switch, publish=zd.Ball(10, 1), epsilon=1)
    assert larger.best.name == "pure composition"


def test_unknown_tasks_are_refused_with_the_list() -> None:
    with pytest.raises(zd.errors.ParameterError, match=r"trimmed_mean"):
        advise("regression", n=10, epsilon=1)


@pytest.mark.parametrize("task", ASKED)
def test_missing_numbers_are_all_named(task: str) -> None:
    with pytest.raises(zd.errors.ParameterError) as caught:
        advise(task)
    for need, example in FORECASTS[task].needs.items():
        assert need.split("|")[0] in str(caught.value)
        assert example in str(caught.value)


@pytest.mark.parametrize("task", [task for task, asked in ASKED.items() if "n" in asked])
def test_the_number_of_rows_from_which_on_an_answer_is_useful(task: str) -> None:
    """There the error is about a tenth of what an answer that reads no rows would have."""
    advice = advise(task, **ASKED[task])
    least = advice.useful_from
    assert least is not None
    assert advice.blind is not None
    for n, enough in ((least * 5 // 4 + 1, True), (least * 4 // 5 - 1, False)):
        asked = {**advice.numbers, "n": n}
        assert (advice.forecast(asked)[0].error <= advice.blind(asked) / 10) == enough
    again = advise(task, **{**ASKED[task], "n": max(2, least // 3)})
    assert again.useful_from == pytest.approx(least, rel=0.15)
    assert "useful from n ≈" in str(again)
    assert "with fewer" in str(again)
    assert "with fewer" not in str(advise(task, **{**ASKED[task], "n": 2 * least}))


def test_nothing_is_said_where_rows_do_not_matter_or_never_suffice() -> None:
    for task in ("histogram", "select", "study"):
        assert advise(task, **ASKED[task]).useful_from is None
        assert "useful from" not in str(advise(task, **ASKED[task]))
    assert smallest_rows(lambda n: 1 + 1 / n, start=7) is None


@pytest.mark.parametrize("start", [1, 10, 3000, 10**9])
@pytest.mark.parametrize(("scale", "power"), [(1, 1), (12, 1), (3456, 2), (10**7, 0.5)])
def test_least_rows_are_found_from_anywhere(start: int, scale: int, power: float) -> None:
    asked: list[int] = []

    def share(n: int) -> float:
        asked.append(n)
        return float((scale / n) ** power)

    assert smallest_rows(share, start=start) == pytest.approx(scale, rel=0.13)
    assert len(asked) < 20


@pytest.mark.parametrize("task", ASKED)
def test_the_call_names_what_there_is(task: str) -> None:
    """What is printed can be found by that name, and takes these keywords."""
    call = advise(task, **ASKED[task]).call
    path, _, rest = call.partition("(")
    module, _, name = path.rpartition(".")
    found = getattr(importlib.import_module(re.sub(r"^zd\b", "zerodelta", module)), name)
    keywords = set(re.findall(r"(\w+)=", rest))
    assert keywords <= set(inspect.signature(found).parameters)


@pytest.mark.parametrize(
    ("n", "dimension", "classes", "epsilon", "name"),
    [
        (105, 4, 3, 1, 'NearestCentroid(bounds=…, classes=[…], block="l2"'),
        (398, 30, 2, 1, "NearestCentroid(bounds=…, classes=[…], epsilon=1)"),
        (1257, 64, 10, "1/2", "RandomForestClassifier("),
        (10**6, 4, 2, 1, "LogisticRegression("),
    ],
)
def test_the_call_of_a_classifier_is_that_of_the_winner(
    n: int, dimension: int, classes: int, epsilon: Any, name: str
) -> None:
    found = advise("classifier", n=n, dimension=dimension, classes=classes, epsilon=epsilon)
    assert name in found.call
    assert len(found) == 4


@pytest.mark.parametrize("classes", [2, 3, 50, ["no", "yes"]])
def test_the_error_of_a_classifier_is_an_error_rate(classes: Any) -> None:
    """No better than a guess for one row, and never better than without noise."""
    guess = 1 - 1 / (classes if isinstance(classes, int) else len(classes))
    for n in (1, 1000, 10**9):
        for method in advise("classifier", n=n, dimension=5, classes=classes, epsilon=1):
            least = NOISELESS_ERROR[method.name] * guess
            assert least <= method.error <= guess
            if n == 1:
                assert method.error == pytest.approx(guess, rel=0.1)
            if n == 10**9:
                assert method.error == pytest.approx(least, rel=0.01)
    found = advise("classifier", n=1000, dimension=5, classes=classes, epsilon=1)
    assert found.useful_from is not None
    error = advise("classifier", n=found.useful_from, dimension=5, classes=classes, epsilon=1)
    assert error.best.error == pytest.approx(guess / 10, rel=0.1)


def test_errors_of_all_models_say_what_they_are() -> None:
    models = {name for name, task in TASKS.items() if task.estimator and task.command}
    assert not {name for name in models if TASKS[name].error == UNKNOWN_ERROR}


@pytest.mark.parametrize(
    ("task", "as_the_function_takes_it", "as_a_number"),
    [
        ("histogram", {"universe": ["a", "b"]}, {"universe": 2}),
        ("histogram", {"universe": zd.Finite(["a", "b"])}, {"universe": 2}),
        ("mode", {"universe": ("a", "b", "c")}, {"universe": 3}),
        ("multinomial", {"classes": ["a", "b", "c"]}, {"classes": 3}),
        ("mean", {"bounds": ([0, 0], [1, 1])}, {"bounds": (0, 1), "dimension": 2}),
        ("mean", {"bounds": ([0, 0], [1, 3])}, {"bounds": (0, 2), "dimension": 2}),
        ("mean", {"bounds": ([0], ["1"])}, {"bounds": (0, 1)}),
        ("histogram", {"bins": 3}, {"universe": 3}),
        ("histogram", {"bins": [0, 18, 65, 120]}, {"universe": 3}),
    ],
)
def test_lists_say_what_their_number_does(
    task: str, as_the_function_takes_it: dict[str, Any], as_a_number: dict[str, Any]
) -> None:
    asked, replaced = ASKED[task], {*as_the_function_takes_it, *as_a_number}
    replaced |= {"dimension"} if task == "mean" else set()
    given = {name: value for name, value in asked.items() if name not in replaced}
    found = advise(task, **{**given, **as_the_function_takes_it})
    wanted = advise(task, **{**given, **as_a_number})
    assert [(m.name, m.error) for m in found] == [(m.name, m.error) for m in wanted]
    assert str(found)


REFUSED: dict[str, dict[str, list[Any]]] = {
    "mean": {
        "epsilon": [0, "no"],
        "n": [0, 2.5],
        "dimension": [0],
        "bounds": [([0, 0], [1, 1, 1]), ([0, 1], [1, 1]), (0, 1, 2), 7],
    },
    "mode": {"universe": [["a", "a"]], "clusters": [2]},
    "multinomial": {"classes": [["a"], "ab", 1.5]},
    "table": {
        "of": [{"age": ["mode"]}, {}],
        "by": ["city", {"city": 0}],
        "bounds": [None],
        "missing": ["drop"],
        "goal": ["fast"],
    },
    "cdf": {"at": [[3, 2], 0]},
    "quantiles": {"q": [[], [2]]},
    "top_k": {"k": [0, 501], "universe": ["abc"]},
    "heavy_hitters": {"universe": [zd.text(5)]},
    "vote": {"options": [0], "least_rows": [0]},
    "histogram": {"universe": [[]], "bins": [3]},  # or a universe
}


@pytest.mark.parametrize("task", REFUSED)
def test_what_the_verb_refuses_is_refused(task: str) -> None:
    for name, wrongs in REFUSED[task].items():
        for wrong in wrongs:
            with pytest.raises(zd.errors.ParameterError):
                advise(task, **{**ASKED[task], name: wrong})


def test_rows_are_synthesized_by_synthesize_and_only_for_domains_that_it_takes() -> None:
    advice = advise("synthesize", **ASKED["synthesize"])
    assert advice.call.startswith("zd.synthesize(")
    with pytest.raises(zd.errors.ParameterError, match=r"2\^24"):
        advise("synthesize", n=1000, domain=dict.fromkeys(range(30), 2), epsilon=1)
    few = advise("synthesize", **ASKED["synthesize"], size=10).best.error
    assert few > advice.best.error + 0.02
    rows = np.zeros((1000, 2), dtype=int)
    release = zd.synthesize(rows, domain={0: 2, 1: 3}, workload=1, epsilon=1, size=10)
    assert release.error == pytest.approx(few)


def test_a_plot_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "advice.png"
    assert isinstance(advise("table", **ASKED["table"]).plot(path), Figure)
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("task", ASKED)
def test_plot_draws_every_method_against_n_and_epsilon(task: str) -> None:
    advice = advise(task, **ASKED[task])
    figure = advice.plot()
    shown = {"n", "questions"} & set(ASKED[task])
    assert len(figure.axes) == 1 + len(shown)
    for panel in figure.axes:
        drawn = [line for line in panel.lines if np.size(line.get_xdata()) > 2]
        assert len(drawn) == len(advice)
        for line in drawn:
            heights = np.asarray(line.get_ydata())
            assert np.isfinite(heights).sum() >= 8


def test_an_epsilon_written_as_a_fraction_can_be_drawn() -> None:
    assert advise("select", options=3, epsilon="1/3").plot().axes


@pytest.mark.parametrize("task", FORECASTS)
def test_a_task_that_states_a_factor_names_the_script_that_measured_it(task: str) -> None:
    """Of others it says that no script did, or what the forecast is of; there is no default."""
    field = {each.name: each for each in fields(Forecast)}["reliable"]
    assert field.default is MISSING
    told = " ".join(FORECASTS[task].reliable.split())
    scripts = re.findall(r"bench/\w+\.py", told)
    assert bool(scripts) or "factor of" not in told
    for script in scripts:
        text = (ROOT / script).read_text(encoding="utf-8")
        measured = "median" if task == "quantile" else task  # it says at which level
        assert re.search(rf'[("]{measured}[" ]', text), (task, script)


def test_where_cells_are_skipped_nothing_is_said_to_be_measured() -> None:
    given: dict[str, Any] = {"n": 10_000, "dimension": 2, "bounds": (0, 1), "epsilon": 1}
    assert "where cells are skipped" in advise("mean", missing="skip", **given).reliable
    assert "skipped" not in advise("mean", **given).reliable
