"""What the planner asks for each task, within which limits, and the calls that do it.

A form names the numbers of a task, says how they are passed to `advise`, and how the job is written
in Python and on the command line.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from zerodelta.data.declare import text
from zerodelta.errors import ParameterError, require
from zerodelta.exact.rational import as_positive
from zerodelta.regression.encoded_columns import RowBox
from zerodelta.regression.objective import LOG_ODDS
from zerodelta.value import value

_ONE = 'people = zd.open("people.csv", columns={"income": zd.number(0, {width})})\n'
_MANY = (
    'names = [f"x{i}" for i in range({dimension})]\n'
    'people = zd.open("people.csv", columns={name: zd.number(0, 100) for name in names})\n'
)
_LABELED = (
    'names = [f"x{i}" for i in range({dimension})]\n'
    "columns = {name: zd.number(0, 100) for name in names}\n"
    'people = zd.open("people.csv", columns={**columns, "y": {kind}})\n'
)
_KEYED = (
    'cities = zd.category([f"city {i}" for i in range({groups})])\n'
    'people = zd.open("people.csv", columns={"income": zd.number(0, {width}), "city": cities})\n'
)
_COUNTED = (
    'items = zd.category([f"item {i}" for i in range({universe})])\n'
    'people = zd.open("people.csv", columns={"item": items})\n'
)
_OUT = "--epsilon {epsilon} --schema people.toml --out out"
_CODE = "# no command: the job needs a function of yours, see the Python"


@value
class Form:
    """The numbers of one task, what `advise` is asked with them, and the calls."""

    title: str
    fields: tuple[str, ...]
    """Beside ε."""
    python: str
    shell: str
    asks: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    imports: str = ""
    estimator: str = ""
    """How the call of {estimator} begins; {command} is its command."""
    winners: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The same, with its command, where that depends on which method is the best."""


_SKIP = {"missing": "skip"}
"""Cells of a data set may be missing, unless its columns say otherwise."""


def _bounded(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Pass the width as bounds from 0 on."""
    others = {name: value for name, value in given.items() if name != "width"}
    return {**others, "bounds": (0, given["width"])}


def _skipping(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_bounded(given), **_SKIP}


def _by(given: Mapping[str, Any]) -> Mapping[str, Any]:
    asked = {"n": given["n"], "epsilon": given["epsilon"], "bounds": (0, given["width"])}
    return {**asked, "of": {"income": ["mean"]}, "by": given["groups"], **_SKIP}


def _letters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    others = {name: value for name, value in given.items() if name != "letters"}
    return {**others, "universe": text(given["letters"], alphabet=string.ascii_lowercase)}


def _levels(given: Mapping[str, Any]) -> Mapping[str, Any]:
    count = given["levels"]
    levels = [f"{place}/{count + 1}" for place in range(1, count + 1)]
    return {"n": given["n"], "epsilon": given["epsilon"], "q": levels, **_SKIP}


def _curve(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"n": given["n"], "epsilon": given["epsilon"], "at": given["values"], **_SKIP}


def _outcomes(given: Mapping[str, Any]) -> Mapping[str, Any]:
    names = {"rounds": "questions", "outcomes": "publish"}
    return {names.get(name, name): value for name, value in given.items()}


def _boxed(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Columns with bounds are scaled by these, and rows forecast as an estimator does then."""
    box = RowBox(numbers=given["dimension"])
    return {**given, "row_length": box.expected(box.corner, LOG_ODDS).row_length}


def _targets(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**_boxed(given), "bounds_y": (0, 100)}


def _domain(given: Mapping[str, Any]) -> Mapping[str, Any]:
    others = {name: value for name, value in given.items() if name != "dimension"}
    return {**others, "domain": {f"x{i}": 2 for i in range(min(given["dimension"], 20))}}


def _statistic(title: str, name: str) -> Form:
    return Form(
        title=title,
        fields=("n", "width"),
        asks=_skipping,
        python=_ONE + f'release = zd.{name}(people, "income", epsilon="{{epsilon}}")',
        shell=f"zerodelta {name} people.csv income {_OUT}",
    )


def _fitted(title: str, kind: str, estimator: str, command: str, **more: Any) -> Form:
    return Form(
        title=title,
        fields=("n", "dimension", *(("classes",) if "{classes}" in kind else ())),
        python=_LABELED.replace("{kind}", kind)
        + 'release = {estimator}epsilon="{epsilon}").fit(people[names], people["y"])',
        shell=f"zerodelta {command} people.csv {{names}} --target y {_OUT}",
        estimator=estimator,
        **more,
    )


_CLASSES = "zd.category(list(range({classes})))"
_CLASSIFIERS = {
    "logistic": ("LogisticRegression(", "logistic"),
    "nearest centroid": ("NearestCentroid(", "nearest-centroid"),
    "nearest centroid, l2": ('NearestCentroid(block="l2", ', "nearest-centroid"),
    "forest": ("RandomForestClassifier(", "random-forest"),
}
_VOTE = (
    'names = ["x", "y"]\n'
    'people = zd.open("people.csv", columns={name: zd.number(0, 100) for name in names})\n'
    "release = zd.vote(\n"
    "    people,\n"
    "    lambda block: int((block[:, 0] > 50).sum()) % {options},  # yours: sees one block\n"
    "    options=list(range({options})),\n"
    '    epsilon="{epsilon}",\n'
    ")"
)

FORMS: Mapping[str, Form] = {
    "mean": Form(
        title="Mean of columns",
        fields=("n", "dimension", "width"),
        asks=_skipping,
        python='names = [f"x{i}" for i in range({dimension})]\n'
        'people = zd.open("people.csv", columns={name: zd.number(0, {width}) for name in names})\n'
        'release = zd.mean(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta mean people.csv {{names}} {_OUT}",
    ),
    "table": Form(
        title="Table: a mean for each group",
        fields=("n", "groups", "width"),
        asks=_by,
        python=_KEYED + 'release = zd.table(people, by="city", of={"income": ["mean"]}, '
        'epsilon="{epsilon}")',
        shell=f"zerodelta mean people.csv income --by city {_OUT}",
    ),
    "count": Form(
        title="Count of rows that meet a condition",
        fields=("n",),
        python=_ONE.replace("{width}", "100")
        + 'release = zd.count(people.where("income >= 50"), epsilon="{epsilon}")',
        shell=f'zerodelta count people.csv --where "income >= 50" {_OUT}',
    ),
    "sum": _statistic("Sum", "sum"),
    "variance": _statistic("Variance", "variance"),
    "std": _statistic("Standard deviation", "std"),
    "histogram": Form(
        title="Histogram: a count for each item",
        fields=("universe",),
        python=_COUNTED + 'release = zd.histogram(people, "item", epsilon="{epsilon}")',
        shell=f"zerodelta histogram people.csv item {_OUT}",
    ),
    "median": Form(
        title="Median",
        fields=("n",),
        python=_ONE.replace("{width}", "100")
        + 'release = zd.median(people, "income", epsilon="{epsilon}")',
        shell=f"zerodelta median people.csv income {_OUT}",
    ),
    "quantile": Form(
        title="One quantile",
        fields=("n",),
        python=_ONE.replace("{width}", "100")
        + 'release = zd.quantile(people, "income", q="1/2", epsilon="{epsilon}")',
        shell=f"zerodelta quantile people.csv income --q 1/2 {_OUT}",
    ),
    "quantiles": Form(
        title="Several quantiles",
        fields=("n", "levels"),
        asks=_levels,
        python=_ONE.replace("{width}", "100")
        + "levels = [i / ({levels} + 1) for i in range(1, {levels} + 1)]\n"
        + 'release = zd.quantiles(people, "income", q=levels, epsilon="{epsilon}")',
        shell=f"zerodelta quantiles people.csv income --quantiles {{parts}} {_OUT}",
    ),
    "cdf": Form(
        title="Distribution: the share of rows below values",
        fields=("n", "values"),
        asks=_curve,
        python=_ONE.replace("{width}", "100")
        + 'release = zd.cdf(people, "income", at=[100 * i / {values} for i in range({values})], '
        'epsilon="{epsilon}")',
        shell=f"zerodelta cdf people.csv income --at {{edges}} {_OUT}",
    ),
    "trimmed_mean": Form(
        title="Trimmed mean",
        fields=("n", "width"),
        asks=lambda given: {**_bounded(given), "trim": "0.1"},
        python='people = zd.open(\n    "people.csv", '
        'columns={"income": zd.number(0, {width}, missing=None)}\n)\n'
        'release = zd.trimmed_mean(people, "income", trim="0.1", epsilon="{epsilon}")',
        shell=f"zerodelta trimmed-mean people.csv income --trim 0.1 {_OUT}",
    ),
    "mode": Form(
        title="Most frequent item",
        fields=("n", "universe"),
        python=_COUNTED + 'release = zd.mode(people, "item", epsilon="{epsilon}")',
        shell=f"zerodelta mode people.csv item {_OUT}",
    ),
    "top_k": Form(
        title="The k most frequent items",
        fields=("n", "universe", "k"),
        python=_COUNTED + 'release = zd.top_k(people, "item", k={k}, epsilon="{epsilon}")',
        shell=f"zerodelta top-k people.csv item --k {{k}} {_OUT}",
    ),
    "heavy_hitters": Form(
        title="Frequent keys that nobody listed",
        fields=("n", "letters"),
        asks=_letters,
        imports="import string\n",
        python="words = zd.text({letters}, alphabet=string.ascii_lowercase)\n"
        'people = zd.open("people.csv", columns={"word": words})\n'
        'release = zd.heavy_hitters(people, "word", epsilon="{epsilon}")',
        shell=f"zerodelta heavy-hitters people.csv word {_OUT}",
    ),
    "select": Form(
        title="The best option, by scores",
        fields=("options",),
        python="scores = [0] * {options}  # yours: one row changes each by at most 1\n"
        'release = zd.select(scores, sensitivity=1, epsilon="{epsilon}")',
        shell=_CODE,
    ),
    "vote": Form(
        title="Any choice at all: blocks of rows vote",
        fields=("n", "options"),
        python=_VOTE,
        shell=_CODE,
    ),
    "select_model": Form(
        title="A model among candidates",
        fields=("n", "options"),
        python="# trains and scores candidates inside a study, or lets blocks vote\n"
        "help(zd.select_model)",
        shell=_CODE,
    ),
    "study": Form(
        title="Study: many internal queries, one small result",
        fields=("rounds", "outcomes"),
        asks=_outcomes,
        python=_ONE.replace("{width}", "100") + "study = zd.Study(\n"
        '    people, epsilon="{epsilon}", publish=zd.Finite({outcomes}), rounds={rounds}, '
        "functions=False\n)\n"
        'release = study.run(lambda s: {outcomes} * s.mean("income") / 100)',
        shell=_CODE,
    ),
    "linear": _fitted(
        "Linear regression", "zd.number(0, 100)", "LinearRegression(", "linear", asks=_targets
    ),
    "logistic": _fitted(
        "Logistic regression, two classes",
        "zd.boolean()",
        "LogisticRegression(",
        "logistic",
        asks=_boxed,
    ),
    "multinomial": _fitted(
        "Logistic regression, more classes",
        _CLASSES,
        "LogisticRegression(",
        "logistic",
        asks=_boxed,
    ),
    "classifier": _fitted(
        "Classifier: which of all", _CLASSES, "", "{command}", winners=_CLASSIFIERS
    ),
    "covariance": Form(
        title="Covariance matrix",
        fields=("n", "dimension", "width"),
        asks=_skipping,
        python=_MANY + 'release = zd.covariance(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta covariance people.csv {{names}} {_OUT}",
    ),
    "correlation": Form(
        title="Correlation matrix",
        fields=("n", "dimension", "width"),
        asks=_skipping,
        python=_MANY + 'release = zd.correlation(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta correlation people.csv {{names}} {_OUT}",
    ),
    "pca": Form(
        title="Principal components",
        fields=("n", "dimension", "width"),
        asks=_skipping,
        python=_MANY + 'release = zd.pca(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta pca people.csv {{names}} {_OUT}",
    ),
    "kmeans": Form(
        title="Clusters",
        fields=("n", "dimension", "clusters"),
        python=_MANY
        + 'release = zd.kmeans(people, names, clusters={clusters}, epsilon="{epsilon}")',
        shell=f"zerodelta kmeans people.csv {{names}} --clusters {{clusters}} {_OUT}",
    ),
    "decision_tree": Form(
        title="Small decision tree",
        fields=("n", "thresholds"),
        python='columns = {"x": zd.number(0, 100), "y": zd.boolean()}\n'
        'people = zd.open("people.csv", columns=columns)\n'
        'release = zd.decision_tree(people, label="y", thresholds={"x": [{cuts}]}, '
        'epsilon="{epsilon}")',
        shell=f"zerodelta tree people.csv x --target y --thresholds x={{cuts}} {_OUT}",
    ),
    "select_features": Form(
        title="Features that explain a target",
        fields=("n", "dimension", "size"),
        python=_LABELED.replace("{kind}", "zd.number(0, 100)")
        + 'release = zd.select_features(people, target="y", size={size}, '
        'epsilon="{epsilon}")',
        shell=f"zerodelta select-features people.csv {{names}} --target y --size {{size}} {_OUT}",
    ),
    "queries": Form(
        title="All tables of two binary columns",
        fields=("n", "dimension"),
        asks=_domain,
        python='names = [f"x{i}" for i in range({dimension})]\n'
        'people = zd.open("people.csv", columns={name: zd.boolean() for name in names})\n'
        'release = zd.answer_queries(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta queries people.csv {{names}} {_OUT}",
    ),
    "synthesize": Form(
        title="Synthetic rows of binary columns",
        fields=("n", "dimension"),
        asks=_domain,
        python='names = [f"x{i}" for i in range({dimension})]\n'
        'people = zd.open("people.csv", columns={name: zd.boolean() for name in names})\n'
        'release = zd.synthesize(people, names, epsilon="{epsilon}")',
        shell=f"zerodelta synthesize people.csv {{names}} {_OUT}",
    ),
}
"""Every task of `advise`, by its name."""


# -- The public numbers that the planner asks for: names, limits, and what they start with --------
# Limits are there because a forecast must come back while one moves a slider; the library itself
# takes larger numbers.


@value
class Field:
    """One number of the form."""

    label: str
    least: float
    most: float
    start: str
    whole: bool = True
    hint: str = ""


FIELDS: Mapping[str, Field] = {
    "epsilon": Field(
        label="ε, the privacy parameter", least=0.001, most=100, start="1", whole=False
    ),
    "n": Field(label="n, the number of rows", least=1, most=10**9, start="10000"),
    "dimension": Field(label="columns", least=1, most=1000, start="5"),
    "width": Field(
        label="width of the bounds",
        least=0.001,
        most=10**12,
        start="100",
        whole=False,
        hint="values lie between 0 and this",
    ),
    "groups": Field(label="groups", least=1, most=2000, start="12"),
    "options": Field(label="options to choose from", least=2, most=500, start="10"),
    "universe": Field(label="items that can occur", least=2, most=10**6, start="100"),
    "k": Field(label="keys to publish", least=1, most=1000, start="10"),
    "letters": Field(label="letters of a key", least=1, most=40, start="10"),
    "levels": Field(label="quantiles", least=1, most=50, start="3", hint="evenly spaced levels"),
    "values": Field(label="values of the curve", least=2, most=500, start="10"),
    "classes": Field(label="classes", least=2, most=100, start="3"),
    "thresholds": Field(label="thresholds of all columns", least=1, most=80, start="4"),
    "clusters": Field(label="clusters", least=1, most=100, start="5"),
    "size": Field(label="features to choose", least=1, most=50, start="3"),
    "rounds": Field(label="internal queries", least=1, most=10**6, start="1000"),
    "outcomes": Field(
        label="size of the result",
        least=2,
        most=10**15,
        start="16",
        hint="one of so many outcomes is published",
    ),
}
"""Every number by its name in a request."""


def as_value(name: str, text: str) -> Any:
    """Return the number that a text spells: an integer, or the text of an exact decimal.

    >>> as_value("n", "2000"), as_value("epsilon", "1/4")
    (2000, '1/4')
    """
    field, told = FIELDS[name], text.strip().replace("_", "").replace(" ", "")
    expected = f"{'a whole number' if field.whole else 'a number'} from {field.least:,.12g} to "
    expected += f"{field.most:,.12g}"
    try:
        require(len(told) <= 40, name, expected=expected, remedy="pass fewer digits")
        number = as_positive(told, name)
    except ParameterError:
        raise ParameterError(
            name, text[:40], expected=expected, remedy="correct this field"
        ) from None
    least = Fraction(str(field.least))  # as it is written: 0.001 itself is allowed
    fits = least <= number <= field.most and not (field.whole and number.denominator > 1)
    require(fits, name, text[:40], expected, "correct this field")
    return int(number) if field.whole else told
