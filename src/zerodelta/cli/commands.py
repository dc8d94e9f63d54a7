"""The tasks and estimators of the command line, in one table, and the commands made of it.

Texts only, so that `zerodelta --help` imports nothing else. Tasks that take a Python function
(`zd.vote`, `zd.select_model`, `zd.propose_test_release`, `zd.bounded_local_sensitivity`, studies)
and those that take no data (`zd.purify`) are not here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from operator import getitem
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, cast, final

import typer

from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.cli.jobs import Job
    from zerodelta.ledger.ledger import Ledger
    from zerodelta.spine.run import Preview


Value: TypeAlias = Literal[
    "text", "number", "count", "numbers", "names", "groups", "lists", "weights", "flag"
]


@value
class Option:
    """A parameter of tasks: how it is written on the command line, and what it says."""

    value: Value
    help: str


@value
class Form:
    """One task or estimator: which function it is, and what it takes."""

    help: str
    publishes: str
    calls: str
    """A name of `zerodelta`, or of `zerodelta.sklearn`."""
    columns: Literal["none", "one", "some", "several"] = "some"
    """At most one; one or more; a list, even of one."""
    target: str | None = None
    """The parameter that names the column to explain; "y" for an estimator."""
    options: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    estimator: bool = False
    example: str = ""


OPTIONS: Final[Mapping[str, Option]] = {
    "by": Option(value="groups", help="Groups: a column, several, or age:0,18,65 to cut numbers."),
    "of": Option(value="lists", help="Statistics, as income=mean,median; may be repeated."),
    "q": Option(value="number", help="Which quantile, such as 0.9."),
    "quantiles": Option(value="numbers", help="Which quantiles, such as 0.1,0.5,0.9."),
    "at": Option(value="numbers", help="At which numbers."),
    "bins": Option(value="numbers", help="Edges that cut numbers into bins, such as 0,18,65."),
    "k": Option(value="count", help="How many."),
    "trim": Option(value="number", help="Which fraction to leave out at each end."),
    "clusters": Option(value="count", help="How many clusters."),
    "components": Option(value="count", help="How many components."),
    "size": Option(value="count", help="How many to choose, or how many rows to make."),
    "thresholds": Option(value="lists", help="Where to split, as age=18,40; may be repeated."),
    "workload": Option(value="count", help="All tables of so many columns."),
    "false_keys": Option(value="number", help="How many invented keys are allowed on average."),
    "goal": Option(value="text", help="What ε is shared for."),
    "weights": Option(value="weights", help="What matters more: income_mean=3; may be repeated."),
    "method": Option(value="text", help="Which method; by default the best forecast."),
    "diagnostics": Option(value="number", help="A share of ε to tell how rows were read, 1/100."),
    "hidden_units": Option(value="count", help="Hidden units."),
    "radius": Option(
        value="number", help="How far rows reach to a corner of their bounds; 1: all."
    ),
    "rounds": Option(value="count", help="Training rounds."),
    "trees": Option(value="count", help="How many trees."),
    "depth": Option(value="count", help="How deep they are."),
    "no_intercept": Option(value="flag", help="Without an intercept."),
}
"""Parameters by the names that the command line and jobs use."""

RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "quantiles": {"quantiles": "q"},
    "kmeans": {"clusters": "n_clusters"},
    "pca": {"components": "n_components"},
    "random-forest": {"trees": "n_estimators", "depth": "max_depth"},
}
"""What a task itself calls them, where that is another name."""

_STATISTIC = ("by", "diagnostics")
_METHOD = ("method", "diagnostics")

FORMS: Final[Mapping[str, Form]] = {
    "count": Form(
        calls="count",
        columns="one",
        options=_STATISTIC,
        help="How many rows there are, or have a value in a column.",
        publishes="the number of rows, or one for each group",
        example="count people.csv --by city",
    ),
    "sum": Form(
        calls="sum",
        options=_STATISTIC,
        help="Sums of columns.",
        publishes="one number for each column (and group)",
        example="sum people.csv income --by city",
    ),
    "mean": Form(
        calls="mean",
        options=(*_STATISTIC, "method"),
        help="Means of columns.",
        publishes="one number for each column (and group)",
        example="mean people.csv income --by city",
    ),
    "variance": Form(
        calls="variance",
        options=_STATISTIC,
        help="Variances of columns.",
        publishes="one number for each column (and group)",
        example="variance people.csv income",
    ),
    "std": Form(
        calls="std",
        options=_STATISTIC,
        help="Standard deviations of columns.",
        publishes="one number for each column (and group)",
        example="std people.csv income",
    ),
    "median": Form(
        calls="median",
        columns="one",
        options=_METHOD,
        help="The median of a column.",
        publishes="one number",
        example="median people.csv income",
    ),
    "quantile": Form(
        calls="quantile",
        columns="one",
        options=("q", *_METHOD),
        needs=("q",),
        help="A quantile of a column.",
        publishes="one number",
        example="quantile people.csv income --q 0.9",
    ),
    "quantiles": Form(
        calls="quantiles",
        columns="one",
        options=("quantiles", *_METHOD),
        needs=("quantiles",),
        help="Several quantiles of a column.",
        publishes="one number for each quantile",
        example="quantiles people.csv income --quantiles 0.1,0.5,0.9",
    ),
    "cdf": Form(
        calls="cdf",
        columns="one",
        options=("at", *_METHOD),
        help="Which fractions of a column lie below given numbers.",
        publishes="one fraction for each number",
        example="cdf people.csv income --at 20000,50000",
    ),
    "trimmed-mean": Form(
        calls="trimmed_mean",
        columns="one",
        options=("trim", *_METHOD),
        needs=("trim",),
        help="The mean without the extremes.",
        publishes="one number",
        example="trimmed-mean people.csv income --trim 0.1",
    ),
    "table": Form(
        calls="table",
        columns="none",
        options=("by", "of", "goal", "weights", "false_keys", "diagnostics"),
        needs=("of",),
        help="Several statistics by group, at one ε.",
        publishes="a table: a line for each group, a column for each statistic",
        example="table people.csv --by city --of income=mean,median",
    ),
    "histogram": Form(
        calls="histogram",
        columns="one",
        options=("bins", *_METHOD),
        help="How many rows have each option of a column.",
        publishes="one count for each option",
        example="histogram people.csv city",
    ),
    "mode": Form(
        calls="mode",
        columns="one",
        options=_METHOD,
        help="The most frequent option of a column.",
        publishes="one option, without its count",
        example="mode people.csv city",
    ),
    "top-k": Form(
        calls="top_k",
        options=("k", "false_keys", *_METHOD),
        needs=("k",),
        help="The k most frequent options or texts of a column.",
        publishes="k keys with counts",
        example="top-k people.csv city --k 2",
    ),
    "heavy-hitters": Form(
        calls="heavy_hitters",
        options=("goal", "false_keys", "diagnostics"),
        help="Frequent texts that nobody listed before.",
        publishes="keys with counts; some may be invented by noise",
        example="heavy-hitters people.csv surname",
    ),
    "select": Form(
        calls="select",
        columns="several",
        options=_METHOD,
        help="The column with the largest sum; all have the same bounds.",
        publishes="the name of one column",
        example="select votes.csv anna bob carla",
    ),
    "covariance": Form(
        calls="covariance",
        columns="several",
        options=_METHOD,
        help="The covariance matrix of columns.",
        publishes="one number for each pair of columns",
        example="covariance people.csv age income",
    ),
    "correlation": Form(
        calls="correlation",
        columns="several",
        options=_METHOD,
        help="The correlation matrix of columns.",
        publishes="one number for each pair of columns",
        example="correlation people.csv age income",
    ),
    "queries": Form(
        calls="answer_queries",
        columns="several",
        options=("workload", *_METHOD),
        help="All tables of two (or k) categorical columns.",
        publishes="fractions for each combination of options",
        example="queries people.csv city member",
    ),
    "synthesize": Form(
        calls="synthesize",
        columns="several",
        options=("size", "workload", *_METHOD),
        help="Synthetic rows of categorical columns.",
        publishes="made-up rows",
        example="synthesize people.csv city member",
    ),
    "select-features": Form(
        calls="select_features",
        columns="several",
        target="target",
        options=("size", *_METHOD),
        needs=("size",),
        help="Which columns explain another one best.",
        publishes="the names of so many columns",
        example="select-features people.csv age income --target member --size 1",
    ),
    "tree": Form(
        calls="decision_tree",
        columns="several",
        target="label",
        options=("thresholds", "diagnostics"),
        help="A small decision tree for a boolean column.",
        publishes="splits and their labels",
        example="tree people.csv age income --target member --thresholds age=18,40",
    ),
    "kmeans": Form(
        calls="KMeans",
        estimator=True,
        options=("clusters", *_METHOD),
        help="Centers of clusters: a model that assigns rows.",
        publishes="the centers",
        example="kmeans people.csv age income --clusters 4",
    ),
    "pca": Form(
        calls="PCA",
        estimator=True,
        options=("components", "radius", *_METHOD),
        help="Principal components: a model that transforms rows.",
        publishes="components, variances and the mean",
        example="pca people.csv age income --components 1",
    ),
    "linear": Form(
        calls="LinearRegression",
        estimator=True,
        target="y",
        options=("no_intercept", *_METHOD),
        help="Linear regression.",
        publishes="coefficients and an intercept",
        example="linear people.csv age --target income",
    ),
    "sparse-linear": Form(
        calls="SparseRegression",
        estimator=True,
        target="y",
        options=("no_intercept", *_METHOD),
        help="Linear regression on few of many columns.",
        publishes="coefficients and an intercept",
        example="sparse-linear people.csv age --target income",
    ),
    "logistic": Form(
        calls="LogisticRegression",
        estimator=True,
        target="y",
        options=("no_intercept", "radius", *_METHOD),
        help="Logistic regression.",
        publishes="coefficients and intercepts",
        example="logistic people.csv age income --target member",
    ),
    "nearest-centroid": Form(
        calls="NearestCentroid",
        estimator=True,
        target="y",
        options=("diagnostics",),
        help="The nearest class mean: for few rows.",
        publishes="the mean of each class",
        example="nearest-centroid people.csv age income --target member",
    ),
    "random-forest": Form(
        calls="RandomForestClassifier",
        estimator=True,
        target="y",
        options=("trees", "depth", "diagnostics"),
        help="Random trees with noisy leaves.",
        publishes="trees and their leaves",
        example="random-forest people.csv age income --target member",
    ),
    "mlp": Form(
        calls="MLPClassifier",
        estimator=True,
        target="y",
        options=("hidden_units", "rounds", "diagnostics"),
        help="A small neural network.",
        publishes="its weights",
        example="mlp people.csv age income --target member",
    ),
}
"""By the names of commands."""

NOT_HERE: Final[Mapping[str, str]] = {
    "vote": "takes a Python function",
    "select_model": "takes Python functions",
    "propose_test_release": "takes a Python function",
    "bounded_local_sensitivity": "takes a Python function",
    "purify": "takes a value, not data",
    "kmeans": "is the model of the command kmeans",
    "pca": "is the model of the command pca",
    "BoundedScaler": "publishes nothing",
}
"""Tasks and estimators without a command, and why."""


# -- Task commands --------------------------------------------------------------------------------
# A command for each task and estimator, made from the table of forms; and jobs from TOML files.

_TYPES: dict[str, Any] = {
    "text": str | None,
    "number": str | None,
    "count": int | None,
    "numbers": str | None,
    "names": list[str] | None,
    "groups": list[str] | None,
    "lists": list[str] | None,
    "weights": list[str] | None,
    "flag": bool,
}

_COMMON: tuple[tuple[str, Any, Any], ...] = (
    ("epsilon", Annotated[str, typer.Option(help="The privacy loss, such as 1/4.")], ...),
    (
        "schema",
        Annotated[str | None, typer.Option(help="The declared columns; `zerodelta init`.")],
        None,
    ),
    ("where", Annotated[str | None, typer.Option(help='Which rows, such as "age >= 18".')], None),
    (
        "expected_rows",
        Annotated[int | None, typer.Option(help="About how many, where that is private.")],
        None,
    ),
    ("ledger", Annotated[str | None, typer.Option(help="Who pays: a file or a URL.")], None),
    (
        "budget",
        Annotated[str | None, typer.Option(help="ε in all, when the ledger is opened.")],
        None,
    ),
    ("analyst", Annotated[str | None, typer.Option(help="Whose account of it pays.")], None),
    (
        "records",
        Annotated[str | None, typer.Option(help="Saved releases that the ledger must know.")],
        None,
    ),
    ("again", Annotated[bool, typer.Option("--again", help="Pay for it once more.")], False),
    ("out", Annotated[str | None, typer.Option(help="The folder to write to.")], None),
    (
        "parquet",
        Annotated[bool, typer.Option("--parquet", help="Write value.parquet, too.")],
        False,
    ),
    ("sign", Annotated[str | None, typer.Option(help="A private key to sign with.")], None),
    (
        "dry_run",
        Annotated[bool, typer.Option("--dry-run", help="Only plan: spend nothing, read no cell.")],
        False,
    ),
    ("as_json", Annotated[bool, typer.Option("--json", help="Print JSON.")], False),
)


def add_tasks(app: typer.Typer) -> None:
    """Give the application a command for each form."""
    for name, form in FORMS.items():
        panel = "Models" if form.estimator or form.target else "Statistics"
        app.command(name, help=_help(form), short_help=form.help, rich_help_panel=panel)(
            _command(name, form)
        )


def _help(form: Form) -> str:
    line = f"zerodelta {form.example} --epsilon 1/4 --schema people.toml --out out"
    return (
        f"{form.help}\n\nPublishes {form.publishes}.\n\n\b\nExample:\n  {line}\n"
        f"  {line.replace('--out out', '--dry-run')}"
    )


def _command(name: str, form: Form) -> Callable[..., None]:
    def command(**given: Any) -> None:
        from zerodelta.cli.jobs import Job, parsed

        options = {
            option: parsed(option, given.pop(option))
            for option in form.options
            if given[option] is not False and given[option] not in (None, [])  # 0 is a number
        }
        for option in form.options:
            given.pop(option, None)
        as_json, dry_run = given.pop("as_json"), given.pop("dry_run")
        columns = tuple(given.pop("columns", None) or ())
        job = Job(task=name, columns=columns, options=options, **given)
        run_jobs([job], dry_run=dry_run, as_json=as_json, alone=True)

    parameters = _parameters(form)
    signature = inspect.Signature(parameters)
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    command.__name__ = name.replace("-", "_")
    return command


def _parameters(form: Form) -> list[inspect.Parameter]:
    words = {"one": "The column.", "some": "The columns.", "several": "The columns."}
    said: list[tuple[str, Any, Any]] = [
        ("data", Annotated[str, typer.Argument(help="A CSV or Parquet file.")], ...)
    ]
    if form.columns != "none":
        told = words[form.columns]
        said.append(("columns", Annotated[list[str] | None, typer.Argument(help=told)], None))
    if form.target is not None:
        said.append(("target", Annotated[str, typer.Option(help="The column to explain.")], ...))
    for name in form.options:
        option = OPTIONS[name]
        flag = f"--{name.replace('_', '-')}"
        said_as = _TYPES[option.value]
        kind = getitem(cast(Any, Annotated), (said_as, typer.Option(flag, help=option.help)))
        said.append((name, kind, False if option.value == "flag" else None))
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind,
            default=inspect.Parameter.empty if default is ... else default,
        )
        for name, kind, default in (*said, *_COMMON)
    ]


def run_jobs(jobs: Sequence[Job], *, dry_run: bool, as_json: bool, alone: bool) -> None:
    """Plan or run jobs, one after the other, and print what came out."""
    from zerodelta.cli import jobs as run
    from zerodelta.cli import shown
    from zerodelta.cli import shown as outputs
    from zerodelta.cli.refusals import IncompleteError, say

    funds = Funds()
    if not dry_run:
        for job in jobs:
            outputs.prepare(job)
        if not alone:  # a mistake in a later job is found before an earlier one is paid for
            funds.check([(job, run.planned(job)) for job in jobs])
    told: list[Any] = []
    problems: list[str] = []
    try:
        for i, job in enumerate(jobs):
            if not alone and not as_json:
                say(f"{'' if i == 0 else chr(10)}[{job.name or job.task}]")
            if dry_run:
                found, left = run.planned(job), funds.left(job)
                line = funds.line(job, found)
                if as_json:
                    told.append(shown.plan_as_json(job, found, left))
                else:
                    shown.say_plan(job, found, line)
                continue
            made = run.released(job)
            files = outputs.write(job, made)
            problems += files.problems
            if as_json:
                told.append(shown.release_as_json(job, made, files))
            else:
                shown.say_release(job, made, files)
    finally:  # what was paid for is told, whatever became of the jobs after it
        if as_json and told:
            shown.say_json(told[0] if alone else told)
    if problems:
        raise IncompleteError(f"the release was paid for and made, but {'; '.join(problems)}")


@final
class Funds:
    """What the ledgers of some jobs have left, as their jobs are planned one after the other."""

    def __init__(self) -> None:
        self._left: dict[tuple[str, str | None, str | None], Fraction] = {}

    def line(self, job: Job, found: Preview) -> str | None:
        """Say what is left for a job, and whether that covers it; None without a ledger."""
        from zerodelta.exact.rational import number_text
        from zerodelta.ledger.store import shown

        left = self.left(job)
        if left is None:
            return None
        price = self._take(job, found)
        covered = price is not None and price <= left
        opened = "would be opened with" if _account(job) is None else "has"
        verdict = "this is covered" if covered else "this is NOT covered"
        told = f"{shown(job.ledger or '')} {opened} {number_text(max(left, Fraction(0)))}"
        return f"{told} left for it; {verdict}"

    def left(self, job: Job) -> Fraction | None:
        """Return what is left for a job; None without a ledger or a budget."""
        return self._left.get(_whose(job), _limit(job))

    def check(self, planned: Sequence[tuple[Job, Preview]]) -> None:
        """Refuse jobs that their ledgers do not cover together."""
        from zerodelta.errors import BudgetError
        from zerodelta.exact.rational import number_text

        for job, found in planned:
            left = self.left(job)
            price = self._take(job, found)
            if left is not None and price is not None and price > left:
                raise BudgetError(
                    f"{job.name} asks for {number_text(price)}, where "
                    f"{number_text(max(left, Fraction(0)))} of the ledger would be left after the "
                    "jobs before it: nothing was spent or read. Ask for less, or "
                    "ledger.raise_budget(to, reason)."
                )

    def _take(self, job: Job, found: Preview) -> Fraction | None:
        left, account = self.left(job), _account(job)
        if left is None or found.price is None:
            return None
        price = found.price if account is None else account.price([found])
        self._left[_whose(job)] = left - price
        return price


def _whose(job: Job) -> tuple[str, str | None, str | None]:
    import zerodelta as zd

    name = None if job.schema is None else zd.read_schema(job.schema).name
    return job.ledger or "", name, job.analyst


def _limit(job: Job) -> Fraction | None:
    from zerodelta.exact.rational import as_positive

    account = _account(job)
    if account is not None:
        return account.remaining
    return None if job.ledger is None or job.budget is None else as_positive(job.budget, "budget")


def _account(job: Job) -> Ledger | None:
    """Return the account that would pay, if it is there already."""
    import zerodelta as zd
    from zerodelta.cli.jobs import account_of
    from zerodelta.ledger.ledger import DEFAULT_DATA, Ledger
    from zerodelta.ledger.store import as_address, is_url

    address = None if job.ledger is None else as_address(job.ledger)
    if address is None or not (is_url(address) or Path(address).exists()):
        return None
    name = zd.read_schema(str(job.schema)).name
    data = DEFAULT_DATA if name is None else name
    try:
        whole = Ledger(address, data=data)
    except zd.ParameterError:  # no account of these data yet
        return None
    if job.records is not None:
        whole.demand(job.records)
    return account_of(address, data, job.analyst)
