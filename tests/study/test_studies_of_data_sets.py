"""Studies of data sets: declared columns, what counts nowhere, and units of several rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import zerodelta as zd
from study.paths import Case, See, judge
from study.stages import gradients_in
from zerodelta.data.isolation import reveal
from zerodelta.data.source import Protection
from zerodelta.errors import ParameterError
from zerodelta.privacy.verify import verify
from zerodelta.spaces import Ball, Finite
from zerodelta.study.study import Study, StudyProgram
from zerodelta.training.losses import Logistic

pyarrow = pytest.importorskip("pyarrow")

F = Fraction
NAN = math.nan


def made(people: Any, **changes: Any) -> Study:
    options = {"epsilon": 1, "publish": Finite(2), "rounds": 20, **changes}
    return Study(people, **options)


# --- declared columns ----------------------------------------------------------------------------

CELLS = np.array(
    [
        ["30", "1000", "oslo", "yes", "a"],
        ["40", "", "rome", "no", "b"],
        ["50", "3000", "", "yes", "c"],
        ["", "9999", "oslo", "no", "d"],
    ],
    dtype=object,
)
COLUMNS: dict[str, Any] = {
    "age": zd.number(20, 60),
    "income": zd.number(0, 4000),
    "city": zd.category(["oslo", "rome"]),
    "member": zd.boolean(),
    "name": zd.text(length=5),
}


def people(**options: Any) -> Any:
    named = dict(zip(COLUMNS, CELLS.T.tolist(), strict=True))
    return zd.open(pyarrow.table(named), columns=COLUMNS, **options)


def test_declared_bounds_and_codes_are_the_defaults(noiseless: Any) -> None:
    study, close = made(people()), pytest.approx
    assert float(study.mean("age")) == close(40, abs=1e-4)
    assert float(study.mean("income")) == close(
        8000 / 3, abs=1e-2
    )  # 9999 is clipped, one is missing
    assert reveal(study.mean(["age", "member"])) == close([40, 0.5], abs=1e-4)
    assert float(study.sum("income")) == close(8000, abs=1e-2)
    assert float(study.sum("age")) == close(120, abs=1e-3)
    assert float(study.count("member")) == 2
    assert float(study.count(lambda rows: rows[:, 0] > 35)) == 2
    assert reveal(study.histogram("city")).tolist() == [2, 1]
    assert reveal(study.histogram("member")).tolist() == [2, 2]
    assert study.size == 4


def test_what_was_not_declared_is_asked_for() -> None:
    study = made(people())
    with pytest.raises(ParameterError, match="bounds"):
        study.mean("city")
    for key in ("age", ["city", "member"], lambda rows: rows[:, 2]):
        with pytest.raises(ParameterError, match="size"):
            study.histogram(key)
    with pytest.raises(ParameterError, match="column"):
        study.mean("name")  # a text is no number


def test_given_bounds_win(noiseless: Any) -> None:
    assert float(made(people(), bounds=(0, 10)).mean("age")) == pytest.approx(10)
    assert float(made(people()).mean("age", bounds=(0, 45))) == pytest.approx(115 / 3, abs=1e-4)


def test_columns_and_frames(noiseless: Any) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"x": [1.0, NAN, 3.0], "y": [0.0, 1.0, 1.0]})
    assert float(made(frame, columns=["x"], bounds=(0, 4)).mean("x")) == pytest.approx(2, abs=1e-5)
    whole = made(frame, missing=None, bounds=(0, 4))
    assert float(whole.mean("x")) == pytest.approx(2, abs=1e-5)  # NaN is the center, 2
    assert float(made(frame, missing=4, bounds=(0, 4)).mean("x")) == pytest.approx(8 / 3, abs=1e-5)
    assert made(people(), columns=["age"])._columns == ("age",)


# --- what counts nowhere -------------------------------------------------------------------------


def test_rows_that_are_dropped_count_nowhere(noiseless: Any) -> None:
    adults = people().where("age >= 35")
    study, close = made(adults, data_norm=100, selects=True), pytest.approx
    assert float(study.mean("age")) == close(45, abs=1e-4)
    assert float(study.sum("age")) == close(90, abs=1e-3)
    assert float(study.mean("income")) == close(3000, abs=1e-2)
    assert float(study.count("member")) == 1
    # a function of a dropped row is nothing, whatever it returns
    assert float(study.count(lambda rows: ~(rows[:, 0] > 45))) == 1
    assert float(study.mean(lambda rows: np.ones(len(rows)), bounds=(0, 1))) == 1
    assert float(study.sum(lambda rows: np.ones(len(rows)), bounds=(-1, 1))) == close(2, abs=1e-5)
    assert reveal(study.histogram(lambda rows: np.zeros(len(rows)), size=1)).tolist() == [2]
    assert reveal(study.gradient(["age"], clip=100)) == close(45, abs=1e-3)
    square = reveal(study.covariance(["age"], centered=False))
    assert square == close(np.array([[(40**2 + 50**2) / 2]]), rel=1e-3)
    assert reveal(study.covariance(["age"])) == close(np.array([[25]]), abs=0.2)


def test_the_number_of_rows_that_count_is_not_there() -> None:
    for private in (people().where("age >= 35"), people(unit="name", max_rows=1)):
        study = made(private)
        assert not hasattr(study, "size")
        assert "about 4 rows" in repr(study)
        told = study.plan.release_plan(guarded=True).public
        assert "the number of rows to plan with, 4" in told


def test_a_mean_of_nobody_is_the_middle(noiseless: Any) -> None:
    study = made(people().where("age >= 60"), data_norm=1)
    assert float(study.mean("age")) == 40
    assert reveal(study.gradient(["age", "income"], clip=1)).tolist() == [0, 0]
    assert reveal(study.covariance(["age", "income"])).tolist() == [[0, 0], [0, 0]]


ODD = [0.0, 1.0, 0.5, 7.0, NAN, -math.inf]
QUESTIONS: dict[str, tuple[Callable[[Study], Any], float]] = {  # and the part that is reached
    "count": (lambda s: s.count(lambda rows: rows[:, 0] > 0.5), 1),
    "sum from 0": (lambda s: s.sum("x"), 1),
    "sum between others": (lambda s: s.sum("x", bounds=("1/4", 1)), 1),
    "sum down to 0": (lambda s: s.sum("x", bounds=(-1, 0)), 0.9),
    "mean": (lambda s: s.mean("x"), 1),
    "mean of two": (lambda s: s.mean(["x", "y"]), 1),
    # (1, 1)/√2 is rounded toward 0 on a lattice of 2^20 steps
    "gradient": (lambda s: s.gradient(lambda rows: 2 * rows - 1, clip=1), 1 - 2**-18),
    "gradient, narrow": (lambda s: s.gradient(["x", "y"], clip="1/2"), 0.4),
    "histogram": (lambda s: s.histogram("x", size=2), 1),
    "second moments": (lambda s: s.covariance(data_norm=1, centered=False), 1 - 1e-4),
    "covariance": (lambda s: s.covariance(data_norm=1), 0.5),
}
NUMBERS: dict[str, Any] = {"x": zd.number(0, 1), "y": zd.number(0, 1)}


def spent(question: Callable[[Study], Any], seen: Any, tables: list[Any]) -> Fraction:
    """The largest Σ ‖Δ‖²/σ² over all pairs, as a part of what the share of a *release* allows."""
    share, allowed, totals = F(1, 20), F(1), []
    for table in tables:
        seen.clear()
        study = made(table)
        question(study)
        share = 1 - study._shares._remaining
        allowed = study.plan.publishing.calibration.mu_squared
        totals.append([([*sums], variance) for sums, variance in seen])
    worst = F(0)
    for a, b in itertools.combinations(totals, 2):
        parts = zip(a, b, strict=True)
        moved = (
            F(sum((x - y) ** 2 for x, y in zip(p, q, strict=True))) / variance
            for (p, variance), (q, _) in parts
        )
        worst = max(worst, sum(moved, F(0)))
    return worst / (share * allowed)


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_row_moves_an_answer_by_more_than_its_share(name: str, noiseless: Any) -> None:
    """Present, missing or dropped: in integers and fractions."""
    question, reached = QUESTIONS[name]
    pairs = itertools.product(ODD, repeat=2)
    whole = [zd.open(pyarrow.table({"x": [x], "y": [y]}), columns=NUMBERS) for x, y in pairs]
    tables = [table.where("y >= 0") for table in whole]
    assert reached <= max(spent(question, noiseless, some) for some in (tables, whole)) <= 1


# --- rows that come and go -----------------------------------------------------------------------


def added(*rows: Any, **options: Any) -> Any:
    cells = np.array(rows, dtype=np.float64).reshape(-1, 2)
    table = pyarrow.table({"x": cells[:, 0], "y": cells[:, 1]})
    kinds = options.pop("columns", NUMBERS)
    return zd.open(table, columns=kinds, neighbors="add-remove", expected_rows=3, **options)


CENTERED: dict[str, tuple[Callable[[Study], Any], float]] = {
    "sum around 0": (lambda s: s.sum("x", bounds=(-1, 1)), 1),
    "sum of two around 0": (lambda s: s.sum(["x", "y"], bounds=(-1, 1)), 1),
    "sum in a ball": (lambda s: s.sum(["x", "y"], norm_bound=1), 1 - 2**-18),
    "one from 0, one around it": (lambda s: s.sum(["x", "y"], bounds=([0, -1], [1, 1])), 0.6),
}


@pytest.mark.parametrize("name", [*QUESTIONS, *CENTERED])
def test_no_row_that_comes_or_goes_moves_an_answer_by_more_than_its_share(
    name: str, noiseless: Any
) -> None:
    """Every row against none, beside another: in integers and fractions."""
    question, reached = {**QUESTIONS, **CENTERED}[name]
    rows = itertools.product([*ODD, -1.0], repeat=2)
    found = [
        spent(question, noiseless, [added((1.0, 0.5), row), added((1.0, 0.5))]) for row in rows
    ]
    assert reached <= max(found) <= 1


@pytest.mark.parametrize("bounds", [(0, 1), (-1, 1)])
def test_a_choice_costs_its_share_where_rows_come_and_go(choices: Any, bounds: Any) -> None:
    for rows in [(), *((row,) for row in itertools.product(ODD, repeat=2))]:
        study = made(added(*rows), selects=True)
        study.select(["x", "y"], bounds=bounds, share=F(1, 3))
    (nobody, mechanism), *others = choices
    moves = {abs(x - y) for one, _ in others for x, y in zip(nobody, one, strict=True)}
    assert max(moves) == mechanism.sensitivity
    assert mechanism.epsilon**2 / 8 <= study.plan.publishing.calibration.rho / 3


def test_training_where_rows_come_and_go() -> None:
    """A gradient sum moves by one bound, not two; the raw last step rests on the number of rows."""
    options: dict[str, Any] = {"publish": Ball(1, 10), "rounds": 20, "mixing_probability": 1e-6}
    people = zd.open(line(20_000), columns=LINE, neighbors="add-remove", expected_rows=20_000)
    study = made(people, **options)
    plan = study.plan_minimize(Logistic(), data_norm=1)
    assert plan.squared == plan.bound**2
    release = study.minimize(Logistic(), data_norm=1)
    claim = verify(release.certificate, epsilon=1, neighbors="add-remove", proven=False)
    assert claim == zd.purification.PureDP(1, neighbors=zd.records.Neighbors.ADD_REMOVE)
    assert "gaussian-smoothing" not in [s.theorem for s in release.certificate.parts[0].steps]
    assert release.value[0] > 0.5
    replaced = made(plain(line(20_000)), **options).plan_minimize(Logistic(), data_norm=1)
    assert plan.error < replaced.error
    assert replaced.squared == (2 * replaced.bound) ** 2


def test_a_gradient_sum_moves_by_one_bound_at_most_where_a_row_comes_or_goes() -> None:
    """Every pair of rows, and every row against none: in integers."""
    rows = list(itertools.product((-1.0, 0.5, 1.0, NAN), (0.0, 1.0, NAN)))
    options: dict[str, Any] = {"publish": Ball(1, 10), "rounds": 5}
    named = {"x": zd.number(-1, 1), "y": zd.boolean()}

    def total(*some: Any) -> tuple[int, int]:
        study = made(added(*some, columns=named), **options)
        plan, gradients = gradients_in(study, Logistic(), data_norm=1)
        (found,) = gradients.total(np.array([-10.0]))
        return int(found), plan.squared

    (nothing, squared), *one = [total(), *(total(row) for row in rows)]
    assert nothing == 0
    assert 0.99 * squared < max(k**2 for k, _ in one) <= squared
    assert max((k - j) ** 2 for k, _ in one for j, _ in one) > squared  # replaced: too little


def test_a_raw_last_step_is_published_only_of_a_known_number_of_rows() -> None:
    """S2 bounds how far all rows together move it: a guess that is too small would not."""
    whole = zd.open(line(), columns=LINE)
    guessed = whole.where("x >= -1", expected_rows=10)
    for people, weighed in ((whole, True), (whole.where("x >= -1"), True), (guessed, False)):
        study = made(people, publish=Ball(1, 10), rounds=5)
        rivals = [name for name, _ in study.plan_minimize(Logistic(), data_norm=1).endings]
        assert any("S2" in name for name in rivals) is weighed


# --- units ---------------------------------------------------------------------------------------


def of_units(*units: Any, max_rows: int = 2, number: int = 2, columns: Any = None) -> Any:
    """Return the data set of units with these rows; unit 0, 1, … in column `who`."""
    rows = [(*np.broadcast_to(row, 2), i) for i, unit in enumerate(units) for row in unit]
    cells = np.array(rows, dtype=np.float64).reshape(-1, 3)
    table = pyarrow.table({"x": cells[:, 0], "y": cells[:, 1], "who": cells[:, 2]})
    kinds = NUMBERS if columns is None else columns
    return zd.open(table, columns=kinds, unit="who", max_rows=max_rows, units=number)


ROWS = [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (NAN, 1.0), (-math.inf, 7.0)]
CONTENTS = [
    ((),),
    *(((row,),) for row in ROWS),
    *((pair,) for pair in itertools.combinations_with_replacement(ROWS, 2)),
]


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_unit_moves_an_answer_by_more_than_its_share(name: str, noiseless: Any) -> None:
    """Two rows of a unit replaced by none, one or two others: the whole μ of what is published."""
    question, reached = QUESTIONS[name]
    tables = [of_units(unit, [(1.0, 0.5)]) for (unit,) in CONTENTS]
    assert reached <= spent(question, noiseless, tables) <= 1


def test_the_noise_of_a_unit_is_that_of_its_rows_together() -> None:
    """σ = m·Δ/μ, where ε/m at the end would need the μ of a smaller ε."""
    one, three = (made(of_units([], max_rows=m)).plan for m in (1, 3))
    assert three.mu_squared == one.mu_squared / 9
    assert three.variance(4, F(1, 7)) == 9 * one.variance(4, F(1, 7))
    third = made(of_units([], max_rows=1), epsilon=F(1, 3)).plan
    assert three.mu_squared > third.mu_squared


def test_a_choice_of_units_costs_its_share_of_rho(choices: Any) -> None:
    """m rows move a score by m sensitivities: (mε)²/8 is the share of ρ."""
    for (unit,) in CONTENTS:
        study = made(of_units(unit, [(1.0, 0.5)]), selects=True)
        study.select(["x", "y"], share=F(1, 3))
    moves = [
        abs(x - y)
        for (a, _), (b, _) in itertools.combinations(choices, 2)
        for x, y in zip(a, b, strict=True)
    ]
    mechanism = choices[0][1]
    rho = study.plan.publishing.calibration.rho
    assert max(moves) == 2 * mechanism.sensitivity
    assert (
        (2 * mechanism.epsilon) ** 2 / 8
        <= rho / 3
        < (2 * mechanism.epsilon) ** 2 / 8 * F(1001, 1000)
    )


@dataclass(frozen=True)
class UnitCase(Case):
    """A study of two units, each with one of these contents."""

    def study(self, rows: Any) -> Study:
        columns = {"x": zd.number(0, 2)}
        return Study(of_units(*rows, columns=columns), **self.settings)


def worst_sum(study: Study, see: See) -> Any:
    """Two rows move a sum of values 0..2 by 4: the threshold where that tells most."""
    variance = 4 / float(study.plan.mu_squared)
    return 2 if see(study.sum("x") > 2 + float(study.plan.epsilon) * variance / 4) else 0


def worst_count(study: Study, see: See) -> Any:
    """Rows beyond the second count nowhere."""
    variance = 1 / float(study.plan.mu_squared)
    return 2 if see(study.count("x") > 1 + float(study.plan.epsilon) * variance / 2) else 0


SETTINGS = {"epsilon": 1, "publish": Finite(3), "rounds": 1, "mixing_probability": F(1, 4)}


@pytest.mark.parametrize(("program", "reached"), [(worst_sum, 1 - 1e-9), (worst_count, 0.99)])
def test_what_is_published_of_units_is_pure(program: Any, reached: float) -> None:
    """The whole law, exactly: one unit has no rows, any of these, or three, of which two count."""
    universe = [(), (0.0,), (2.0,), (0.0, 0.0), (2.0, 2.0), (2.0, 2.0, 2.0), (NAN, 2.0)]
    if program is worst_count:
        universe = [tuple(x / 2 for x in unit) for unit in universe]
    verdict = judge(UnitCase(program, SETTINGS, size=2, universe=universe))
    assert verdict.pure
    assert not verdict.broken
    assert reached < verdict.tightness <= 1


# --- training ------------------------------------------------------------------------------------


def line(count: int = 200) -> Any:
    x = np.linspace(-1, 1, count)
    return pyarrow.table({"x": x, "y": x > 0, "who": np.arange(count) // 2})


LINE: dict[str, Any] = {"x": zd.number(-1, 1), "y": zd.boolean()}


def plain(table: Any) -> Any:
    return np.column_stack([table["x"].to_numpy(), table["y"].to_numpy()]).astype(float)


def gradient_sum(study: Study) -> list[int]:
    _, gradients = gradients_in(study, Logistic(), data_norm=1)
    return [int(k) for k in gradients.total(np.array([0.25]))]


def test_training_reads_only_rows_that_count() -> None:
    ball = {"publish": Ball(1, 10), "rounds": 5}
    table = line()
    rows = plain(table)
    kept = gradient_sum(made(rows[rows[:, 0] >= 0.5], **ball))
    filtered = zd.open(table, columns=LINE).where("x >= 0.5")
    assert gradient_sum(made(filtered, **ball)) == kept
    assert gradient_sum(made(filtered.where("x >= 1.5"), **ball)) == [0]


def test_training_protects_units() -> None:
    """More rows than the declared units have slots: their number is never compared."""
    table = line(20_000)
    for units in (10_000, 3_000):
        people = zd.open(table, columns=LINE, unit="who", max_rows=2, units=units)
        study = made(people, publish=Ball(1, 10), rounds=20, mixing_probability=1e-6)
        plan = study.plan_minimize(Logistic(), data_norm=1)
        release = study.minimize(Logistic(), data_norm=1)
        assert verify(
            release.certificate, epsilon=1, unit="who", proven=False
        ) == zd.purification.PureDP(1)
        steps = release.certificate.parts[0].steps
        assert steps[-2].theorem == "units"
        spent = sum(
            F(s.numbers["sensitivity_squared"]) / F(s.numbers["variance"]) * s.numbers["count"]
            for s in steps[:-2]
        )
        alone = made(plain(table), publish=Ball(1, 10), rounds=20, mixing_probability=1e-6)
        assert plan.error > alone.plan_minimize(Logistic(), data_norm=1).error
        assert 4 * spent < 1
        assert release.value[0] > 0.5


def test_a_function_of_dropped_rows_adds_no_gradient() -> None:
    def constant(theta: Any, rows: Any) -> Any:
        return np.ones((len(rows), 1))

    filtered = zd.open(line(), columns=LINE).where("x >= 0.5")
    study = made(filtered, publish=Ball(1, 10), rounds=5)
    _, gradients = gradients_in(study, constant, clip=1)
    kept = int((plain(line())[:, 0] >= 0.5).sum())
    assert gradients.total(np.zeros(1)).tolist() == [kept << 20]


def test_a_verb_that_runs_a_study_gives_it_the_whole_epsilon_of_a_unit() -> None:
    """Planned for one row at ε/m; the study itself multiplies its noise by m."""
    asked = {"epsilon": F(1, 6), "publish": Finite(2), "rounds": 3}
    planned = StudyProgram(study=asked, program=lambda s: int(s.mean("x") > 0.5))
    whole = planned.protecting(Protection(unit="who", max_rows=2))
    assert (planned.price, whole.price) == (F(1, 6), F(1, 3))
    release = whole.run(of_units([(1.0, 1.0)] * 5, []))
    assert verify(release.certificate, epsilon=F(1, 3), unit="who") == zd.purification.PureDP(
        F(1, 3)
    )
