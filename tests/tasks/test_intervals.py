"""Releases of every verb: intervals in their shape, frames, pages and pictures of them."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib import pyplot

import zerodelta as zd
from zerodelta.exact.bits import ReplayBits
from zerodelta.privacy import shown_release
from zerodelta.tables import grouped as group_table
from zerodelta.tables.grouped import Table
from zerodelta.testing import replayed

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


N = 4000
GENERATOR = np.random.default_rng(12)
FRAME = pd.DataFrame(
    {
        "city": GENERATOR.choice(["oslo", "rome", "<b>"], N, p=[0.7, 0.29, 0.01]),
        "income": np.where(GENERATOR.uniform(size=N) < 0.1, np.nan, GENERATOR.gamma(2, 20_000, N)),
        "age": GENERATOR.integers(0, 90, N),
        "who": np.arange(N) // 2,
    }
)
COLUMNS = {
    "city": zd.category(["oslo", "rome", "<b>"]),
    "income": zd.number(0, 200_000),
    "age": zd.number(0, 100, missing=None),
}


def people(frame: Any = FRAME, **options: Any) -> Any:
    return zd.open(frame, columns=COLUMNS, **options)


BALL = GENERATOR.uniform(-1, 1, size=(N, 3)) * [1, 0.5, 0.1]

RELEASES: dict[str, Any] = {
    "count": lambda: (
        zd.count(people().where("age < 18"), epsilon=1),
        int((FRAME.age < 18).sum()),
    ),
    "public count": lambda: (zd.count(people(), epsilon=1), N),
    "values": lambda: (zd.count(people(), "income", epsilon=1), int(FRAME.income.count())),
    "sum": lambda: (zd.sum(people(), "income", epsilon=1), clipped().sum()),
    "sums": lambda: (
        zd.sum(people(), ["income", "age"], epsilon=1),
        np.array([clipped().sum(), FRAME.age.sum()]),
    ),
    "mean": lambda: (zd.mean(people(), "age", epsilon=1), FRAME.age.mean()),
    "skipping mean": lambda: (zd.mean(people(), "income", epsilon=1), clipped().mean()),
    "skipping means": lambda: (
        zd.mean(people(), ["income", "age"], epsilon=1),
        np.array([clipped().mean(), FRAME.age.mean()]),
    ),
    "means": lambda: (
        zd.mean(FRAME[["age", "who"]].to_numpy(), bounds=(0, N), epsilon=1),
        FRAME[["age", "who"]].mean().to_numpy(),
    ),
    "variance": lambda: (zd.variance(people(), "age", epsilon=1), FRAME.age.var(ddof=0)),
    "std": lambda: (zd.std(people(), "income", epsilon=1), clipped().std(ddof=0)),
    "added": lambda: (
        zd.mean(people(neighbors="add-remove", expected_rows=N), "income", epsilon=1),
        clipped().mean(),
    ),
    "units": lambda: (
        zd.mean(zd.open(FRAME, columns=COLUMNS, unit="who", max_rows=2), "income", epsilon=1),
        clipped().mean(),
    ),
    "histogram": lambda: (zd.histogram(people(), "city", epsilon=1), by_city()),
    "counts of items": lambda: (
        zd.histogram(
            list("aab") * 50 + ["c"] * 90, universe=["a", "b", "c"], epsilon=1, unknown="c"
        ),
        np.array([100, 50, 90]),
    ),
    "bins": lambda: (
        zd.histogram(people(), "age", bins=[0, 50, 100], epsilon=1, method="laplace"),
        np.array([(FRAME.age < 50).sum(), (FRAME.age >= 50).sum()]),
    ),
    "cdf": lambda: (
        zd.cdf(FRAME.age.to_numpy(), at=[17, 64], bounds=(0, 100), epsilon=1),
        np.array([(FRAME.age <= 17).mean(), (FRAME.age <= 64).mean()]),
    ),
    "cdf in blocks": lambda: (
        zd.cdf(FRAME.age.to_numpy(), at=list(range(3, 90)), bounds=(0, 100), epsilon=1),
        np.array([(FRAME.age <= age).mean() for age in range(3, 90)]),
    ),
    "trimmed mean": lambda: (
        zd.trimmed_mean(
            FRAME.age.to_numpy(), trim=0.1, bounds=(0, 100), epsilon=1, method="laplace"
        ),
        np.sort(FRAME.age)[N // 10 : N - N // 10].mean(),
    ),
}
for _method in ("matrix", "frobenius", "max"):
    for _missing in (None, "skip"):
        RELEASES[f"covariance {_method} {_missing}"] = lambda method=_method, missing=_missing: (
            zd.covariance(BALL, bounds=(-2, 3), method=method, missing=missing, epsilon=1),
            np.cov(BALL.T, ddof=0),
        )
        RELEASES[f"correlation {_method} {_missing}"] = lambda method=_method, missing=_missing: (
            zd.correlation(
                BALL[:, :2], bounds=(-1, 1), method=method, missing=missing, epsilon=100
            ),
            np.corrcoef(BALL[:, :2].T),
        )
for _norm in (1, 2, np.inf):
    for _missing in (None, "skip"):
        RELEASES[f"ball {_norm} {_missing}"] = lambda norm=_norm, missing=_missing: (
            zd.mean(BALL, data_norm=4, norm=norm, missing=missing, epsilon=1),
            BALL.mean(axis=0),
        )


def clipped() -> Any:
    return FRAME.income.dropna().clip(0, 200_000)


def by_city() -> Any:
    return FRAME.city.value_counts().reindex(["oslo", "rome", "<b>"]).to_numpy()


@pytest.mark.parametrize("name", RELEASES)
def test_every_release_with_a_public_law_has_an_interval_of_its_shape(name: str) -> None:
    release, truth = RELEASES[name]()
    lower, upper = release.interval(1 - 1e-9)
    assert np.shape(lower) == np.shape(upper) == np.shape(release.value)
    assert type(lower) is type(release.value)
    assert np.all(lower <= np.asarray(truth) + 1e-9 * np.abs(truth))
    assert np.all(np.asarray(truth) - 1e-9 * np.abs(truth) <= upper)
    low, high = release.interval()
    assert np.all(np.asarray(upper) - lower >= np.asarray(high) - low)
    assert np.all(np.asarray(lower) <= release.value)
    wide = release.interval(0.9, simultaneous=True)
    each = release.interval(0.9)
    assert np.all(np.asarray(wide[1]) - wide[0] >= np.asarray(each[1]) - each[0])
    frame = release.to_frame()
    assert frame["lower"].tolist() == np.ravel(low).tolist()
    assert frame["upper"].tolist() == np.ravel(high).tolist()
    assert "clipped" in release.covers
    again = pickle.loads(pickle.dumps(release)).interval()
    assert np.array_equal(again, (low, high))
    assert zd.verify(release.certificate, unit=release.certificate.unit)


def test_a_public_number_of_rows_is_a_point() -> None:
    assert zd.count(people(), epsilon=1).interval() == (N, N)


ASKED: dict[str, Any] = {"income": ["mean", "std"], "age": ["sum"]}


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (FRAME, pd.DataFrame),
        (pl.from_pandas(FRAME), pl.DataFrame),
        (pl.from_pandas(FRAME).lazy(), pl.DataFrame),
        (pa.Table.from_pandas(FRAME), pa.Table),
        (
            FRAME[["city", "income", "age"]]
            .to_records(index=False)
            .astype([("city", "U4"), ("income", float), ("age", float)]),
            Table,
        ),
    ],
)
def test_tables_have_tables_of_their_own_kind(given: Any, kind: type) -> None:
    release = zd.table(people(given), by="city", of=ASKED, epsilon=1)
    lower, upper = release.interval(0.999999)
    assert isinstance(release.value, kind)
    assert isinstance(lower, kind)
    low, high = (_columns(each) for each in (lower, upper))
    assert list(low) == ["city", "count", "income_mean", "income_std", "age_sum"]
    assert low["city"] == ["oslo", "rome", "<b>"]
    truth = by_city()
    assert np.all(np.array(low["count"]) <= truth)
    assert np.all(truth <= np.array(high["count"]))
    means = FRAME.assign(income=clipped()).groupby("city").income.mean()[low["city"]].to_numpy()
    assert np.all(np.array(low["income_mean"]) <= means)
    assert np.all(means <= np.array(high["income_mean"]))
    frame: Any = release.to_frame(level=0.999999)
    assert isinstance(frame, pd.DataFrame if kind is Table else kind)
    shown = _columns(frame)
    assert list(shown)[:4] == ["city", "count", "count_lower", "count_upper"]
    assert shown["income_std_lower"] == low["income_std"]
    if isinstance(frame, pd.DataFrame):
        assert "clipped" in frame.attrs["intervals"]


QUARTILES: dict[str, Any] = {"income": ["mean", {"quantiles": [0.25, 0.5, 0.75]}]}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


@pytest.mark.parametrize("given", ["frame", "file"])
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_frame_is_one_of_the_library_that_was_asked_for(
    given: str, kind: Any, tmp_path: Any
) -> None:
    """By default that of the data, else the first that is installed; quantiles are numbers."""
    data = people(pl.from_pandas(FRAME))
    if given == "file":
        FRAME.to_csv(tmp_path / "people.csv", index=False)
        data = zd.open(tmp_path / "people.csv", columns=data.kinds)
    release = zd.table(data, by="city", of=QUARTILES, epsilon=1)
    frame = release.to_frame(kind)
    own = pl.DataFrame if given == "frame" else pd.DataFrame
    assert isinstance(frame, own if kind is None else KINDS[kind])
    shown = _columns(frame)
    ends = ("", "_lower", "_upper")
    names = ["count", "income_mean", "income_q25", "income_median", "income_q75"]
    assert list(shown) == ["city", *(f"{name}{end}" for name in names for end in ends)]
    assert shown["income_q25"] == _columns(release.value)["income_q25"]
    assert pd.isna(pd.Series(shown["income_q25_lower"])).all()
    assert list(_columns(release.interval()[0])) == ["city", *names]
    assert "None for income_q25, income_median, income_q75" in release.covers


@pytest.mark.parametrize(
    ("missing", "kind"),
    [((), "pandas"), (("pandas",), "polars"), (("pandas", "polars"), "pyarrow")],
)
def test_a_frame_is_one_of_the_first_library_that_is_installed(
    missing: tuple[str, ...], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (shown_release, group_table):
        monkeypatch.setattr(
            module, "find_spec", lambda name: None if name in missing else find_spec(name)
        )
    release = zd.histogram([1, 2, 2], universe=3, epsilon=1)
    assert isinstance(release.to_frame(), KINDS[kind])
    assert isinstance(Table({"a": ["b"]}, {"count": np.array([1])}).to_frame(), KINDS[kind])


def test_without_a_library_of_frames_there_are_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shown_release, "find_spec", lambda name: None)
    release = zd.histogram([1, 2, 2], universe=3, epsilon=50)
    assert release.to_frame()["value"] == [0, 1, 2]


def test_another_kind_of_frame_is_refused() -> None:
    release = zd.mean(people(), "age", epsilon=1)
    for kind in ("spark", 0.95, "0.95"):
        with pytest.raises(zd.errors.ParameterError, match=r"level=0\.95|did you mean"):
            release.to_frame(kind)  # type: ignore[arg-type]


def test_keys_and_places_are_columns_of_a_frame() -> None:
    found = zd.top_k(["a"] * 500 + ["b"] * 300, universe=["a", "b", "c"], k=2, epsilon=9)
    assert list(found.to_frame().columns) == ["0", "count"]
    assert found.to_frame()["0"].tolist() == ["a", "b"]
    for levels in ([0.1, 0.5], np.array([0.1, 0.5]), [0.9, 0.5, 0.1]):
        quantiles = zd.quantiles(people(), "age", q=levels, epsilon=1).to_frame()
        assert quantiles["quantile"].tolist() == list(levels)
    assert zd.cdf(people(), "age", at=[30, 60], epsilon=1).to_frame()["at"].tolist() == [30, 60]
    assert next(iter(zd.histogram(people(), "city", epsilon=1).to_frame())) == "city"


def _columns(table: Any) -> dict[str, list[Any]]:
    if isinstance(table, pa.Table):
        return dict(table.to_pydict())
    return {
        name: table[name].tolist() if hasattr(table[name], "tolist") else table[name].to_list()
        for name in table.columns
    }


def test_a_population_has_means_but_no_counts() -> None:
    release = zd.table(people(), by="city", of=ASKED, epsilon=1)
    lower, upper = release.interval(of="population")
    assert lower["count"].isna().all()
    assert upper["age_sum"].isna().all()
    sample = release.interval()
    assert (lower["income_mean"] <= sample[0]["income_mean"]).all()
    assert (upper["income_mean"] >= sample[1]["income_mean"]).all()
    with pytest.raises(zd.errors.ParameterError, match='of="sample"'):
        zd.count(people().where("age < 9"), epsilon=1).interval(of="population")


def test_units_make_population_intervals_wider_by_their_rows() -> None:
    widths = []
    for most in (1, 2):
        data = zd.open(FRAME, columns=COLUMNS, unit="who", max_rows=most)
        lower, upper = zd.mean(data, "income", epsilon=1000).interval(of="population")
        widths.append((upper - lower) * np.sqrt(most))  # twice as many rows
    assert widths[1] == pytest.approx(2 * widths[0], rel=0.05)


REFUSED: dict[str, tuple[Any, str]] = {
    "median": (lambda: zd.median(FRAME.age.to_numpy(), bounds=(0, 100), epsilon=1), "ranks"),
    "quantiles": (
        lambda: zd.quantiles(FRAME.age.to_numpy(), q=[0.1, 0.9], bounds=(0, 100), epsilon=1),
        "ranks",
    ),
    "mode": (lambda: zd.mode(list("aab"), universe=["a", "b"], epsilon=1), "counts of options"),
    "smooth": (
        lambda: zd.trimmed_mean(
            FRAME.age.to_numpy(), trim=0.1, bounds=(0, 100), epsilon=1, method="smooth-sensitivity"
        ),
        "laplace",
    ),
    "keys": (
        lambda: zd.heavy_hitters(
            ["a"] * 900, universe=zd.text(alphabet="abc", length=2), epsilon=1
        ),
        "zd.table or zd.histogram of the keys",
    ),
    "purified": (
        lambda: zd.purify(1, space=zd.Finite(4), claim=zd.GaussianDP("1/10"), epsilon=1),
        "a count, a sum, a mean",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_elsewhere_the_refusal_names_the_method_and_what_to_ask(name: str) -> None:
    make, remedy = REFUSED[name]
    release = make()
    with pytest.raises(zd.errors.ParameterError, match=remedy) as refused:
        release.interval()
    assert str(refused.value)[1:] in release.covers
    if np.ndim(release.value) == 1 or np.isscalar(release.value):
        frame = release.to_frame()
        assert frame["lower"].isna().all()
        assert frame["upper"].isna().all()
    assert "<script" not in release._repr_html_()


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, "many", float("nan"), None])
def test_a_level_is_between_0_and_1(level: Any) -> None:
    release = zd.mean(people(), "age", epsilon=1)
    with pytest.raises(zd.errors.ParameterError):
        release.interval(level)
    with pytest.raises(zd.errors.ParameterError, match="sample"):
        release.interval(of="everybody")


def test_pages_escape_what_is_anyones_text() -> None:
    page = zd.table(people(), by="city", of=ASKED, epsilon=1)._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert "income_mean" in page
    assert " to " in page
    assert "are not covered" in page
    many = zd.histogram([1] * 9, universe=100, epsilon=1)._repr_html_()
    assert "80 more" in many


def test_pictures_have_labeled_axes_and_a_bar_for_each_value() -> None:
    release = zd.table(people(), by="city", of=ASKED, epsilon=1)
    axes = release.plot()
    assert "income_mean" in axes.get_xlabel()
    assert "95 %" in axes.get_xlabel()
    assert axes.get_ylabel() == "city"
    assert [text.get_text() for text in axes.get_yticklabels()] == ["oslo", "rome", "<b>"]
    (bars,) = axes.collections
    lower, upper = release.interval()
    ends = np.array([segment[:, 0] for segment in bars.get_segments()])
    assert ends[:, 0].tolist() == lower["income_mean"].tolist()
    assert ends[:, 1].tolist() == upper["income_mean"].tolist()
    other = release.plot("count", level=0.5)
    assert "count" in other.get_xlabel()
    assert "50 %" in other.get_xlabel()
    with pytest.raises(zd.errors.ParameterError, match="income_mean"):
        release.plot("income_men")
    assert zd.histogram([1, 2, 2], universe=70, epsilon=1).plot().get_xlabel().startswith("count")
    bare = zd.median(FRAME.age.to_numpy(), bounds=(0, 100), epsilon=1).plot()
    assert not bare.collections


@pytest.mark.parametrize("kind", ["pandas", "table"])
def test_quantiles_are_ranges_beside_their_mean_and_never_labels(kind: str, tmp_path: Any) -> None:
    release = zd.table(people(), by="city", of=QUARTILES, epsilon=1)
    shown = _columns(release.value)
    if kind == "table":
        release.save(tmp_path / "release.json")
        release = zd.load(tmp_path / "release.json")
    for column in (None, "income", "income_q25"):
        axes = release.plot(column)
        assert [text.get_text() for text in axes.get_yticklabels()] == ["oslo", "rome", "<b>"]
        assert axes.get_ylabel() == "city"
        assert "ranges: 25, 50, 75 % quantiles" in axes.get_xlabel()
        ranges = np.array([each[:, 0] for each in axes.collections[0].get_segments()])
        assert ranges.tolist() == [list(each) for each in zip(*_quartiles(shown), strict=True)]
        points = [line.get_xdata().tolist() for line in axes.lines]
        assert shown["income_median"] in points
        assert (shown["income_mean"] in points) is (column is None)
    page = release._repr_html_()
    heads = re.findall("<th>(.*?)</th>", page)
    names = ["income_mean", "95 %", "income_q25", "income_median", "income_q75"]
    assert heads == ["city", "count", "95 %", *names]


def _quartiles(shown: Any) -> tuple[Any, Any]:
    return shown["income_q25"], shown["income_q75"]


def test_what_a_file_calls_a_quantile_is_shown_as_a_number() -> None:
    release = zd.table(people(), by="city", of={"age": "median"}, epsilon=1)
    odd = {"count": np.array([1]), "x_y": np.array([2.0]), "x_y_rank_error": np.array([1.0])}
    named = replace(release, value=Table({"city": ["oslo"]}, odd), sums=())
    assert "x_y" in named._repr_html_()
    assert named.plot("x_y").get_xlabel() == "x_y"
    assert named.to_frame()["x_y"].tolist() == [2.0]


def test_quantiles_of_all_rows_are_one_range() -> None:
    release = zd.quantiles(people(), "age", q=[0.9, 0.1, 0.5], epsilon=1)
    axes = release.plot()
    (segment,) = axes.collections[0].get_segments()
    assert segment[:, 0].tolist() == sorted(release.value)[::2]
    assert "10, 50, 90 % quantiles" in axes.get_xlabel()


COUNTED: dict[str, Callable[[], zd.records.Release]] = {
    "histogram": lambda: zd.histogram(people(), "city", epsilon=1),
    "bins": lambda: zd.histogram(people(), "age", bins=[0, 30, 100], epsilon=1),
    "counts": lambda: zd.count(people(), by="city", epsilon=1),
    "top_k": lambda: zd.top_k(people(), "city", k=2, epsilon=1),
}


@pytest.mark.parametrize("make", COUNTED.values(), ids=COUNTED)
def test_counts_are_bars_from_0(make: Callable[[], zd.records.Release]) -> None:
    release = make()
    axes = release.plot()
    counts = release.to_frame().iloc[:, 1].tolist()
    assert [bar.get_x() for bar in axes.patches] == [0] * len(counts)
    assert [bar.get_width() for bar in axes.patches] == counts
    assert axes.yaxis_inverted()


def test_a_picture_of_unknown_keys_says_that_they_may_be_invented() -> None:
    universe = zd.text(9, alphabet="abcdefghijklmnopqrstuvwxyz")
    axes = zd.heavy_hitters(["ann"] * 900, universe=universe, epsilon=1).plot()
    assert "a key that noise invented" in axes.get_title()
    assert "ann" in [text.get_text() for text in axes.get_yticklabels()]
    bits = ReplayBits("none")
    none = replayed(bits)(zd.heavy_hitters)(["ann"], universe=universe, epsilon=1)
    assert "no key was found" in none.plot().get_title()
    assert "no key was found" in none._repr_html_()


def test_a_page_shows_the_digits_that_the_error_leaves() -> None:
    release = zd.table(people(), by="city", of=QUARTILES, epsilon=1)
    page = release._repr_html_()
    (lower, upper), mean = release.interval(), _columns(release.value)["income_mean"][0]
    error = (upper["income_mean"][0] - lower["income_mean"][0]) / 4
    cells = re.findall("<td>(.*?)</td>", page)
    shown = float(cells[3].replace(",", ""))
    assert 0 < abs(shown - mean) <= error / 10  # two digits of the error
    assert "count" in page


@pytest.mark.parametrize("relation", ["where", "unit", "add-remove"])
@pytest.mark.parametrize("verb", [zd.variance, zd.std])
def test_a_spread_of_rows_whose_number_is_private_has_an_interval(verb: Any, relation: str) -> None:
    """Their noisy number is no part of the value, so it has no interval beside it."""
    data = {
        "where": lambda: people().where("age >= 0"),
        "unit": lambda: people(unit="who", max_rows=2),
        "add-remove": lambda: people(neighbors="add-remove", expected_rows=N),
    }[relation]()
    ages = float(getattr(FRAME["age"], verb.__name__[:3])(ddof=0))
    release = verb(data, "age", epsilon=2)
    for options in ({}, {"of": "population"}, {"simultaneous": True}):
        low, high = release.interval("0.999999", **options)
        assert low < ages < high
    assert list(release.to_frame().columns)[-2:] == ["lower", "upper"]
    assert "%" in release._repr_html_()
    assert release.plot() is not None
    two = verb(data, ["age", "income"], epsilon=2)
    low, high = two.interval("0.999999")
    assert low.shape == high.shape == (2,)
    assert low[0] < ages < high[0]


@pytest.mark.filterwarnings("error")
def test_groups_that_may_be_empty_have_intervals_without_a_warning() -> None:
    release = zd.variance(people(), "age", by="city", epsilon="1/1000")
    low, high = release.interval(0.9, of="population")
    assert (low["age_variance"] >= 0).all()
    assert (high["age_variance"] <= 2500).all()


def test_what_is_no_number_is_not_drawn() -> None:
    with pytest.raises(zd.errors.ParameterError, match="numbers"):
        zd.mode(people(), "city", epsilon=1).plot()


@pytest.mark.parametrize("verb", [zd.mean, zd.variance, zd.std])
@pytest.mark.parametrize("missing", [None, "skip"])
def test_a_spread_lies_inside_its_interval_whatever_the_noise(verb: Any, missing: Any) -> None:
    """Rows at both ends, at one end and in the middle, where noise leaves what sums allow."""
    for rows in (np.tile([0.0, 100.0], 10), np.full(20, 99.0), np.full(20, 50.0)):
        for label in range(15):
            with replayed(str(label)):
                release = verb(rows, bounds=(0, 100), epsilon="1/2", missing=missing)
            low, high = release.interval()
            assert low <= release.value <= high
