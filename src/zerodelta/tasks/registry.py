"""List all tasks by name, with the file that describes each and its line in `zerodelta --help`.

This file imports no task, so that listing tasks loads none of them, and using one loads its file
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple, final

if TYPE_CHECKING:
    from zerodelta.tasks.task import Task


@final
class Fitted(NamedTuple):
    """An estimator whose command has no options but those of all estimators."""

    estimator: str
    """A class of `zerodelta.sklearn`."""
    publishes: str
    target: str = "member"
    """The column to explain, in the example."""


@final
class Listed(NamedTuple):
    """The file that describes a task, and one line on its command, if it has one."""

    file: str
    help: str = ""
    command: str = ""
    """The name of the command, where it differs from that of the task."""
    verb: str = ""
    """The name of the verb, where it differs from that of the task."""
    room: str = ""
    """The public module of the verb, where that is not `zerodelta` itself."""
    fits: Fitted | None = None
    """The whole description of the task, where it only fits an estimator."""


INDEX: Mapping[str, Listed] = {
    "count": Listed("statistics", "The number of rows, or of values in a column."),
    "sum": Listed("statistics", "Sums of columns."),
    "mean": Listed("statistics", "Means of columns."),
    "variance": Listed("statistics", "Variances of columns."),
    "std": Listed("statistics", "Standard deviations of columns."),
    "median": Listed("quantiles", "The median of a column."),
    "quantile": Listed("quantiles", "A quantile of a column."),
    "quantiles": Listed("quantiles", "Several quantiles of a column."),
    "cdf": Listed("distributions", "The fractions of a column up to stated numbers."),
    "trimmed_mean": Listed("robust", "The mean without the extremes."),
    "table": Listed("table", "Several statistics by group, at one ε."),
    "histogram": Listed("distributions", "The number of rows with each option of a column."),
    "mode": Listed("choices", "The most frequent option of a column."),
    "top_k": Listed("keys", "The k most frequent options or texts of a column."),
    "heavy_hitters": Listed("keys", "Frequent texts that nobody listed before."),
    "select": Listed("choices", "The column with the largest sum; all have the same bounds."),
    "covariance": Listed("covariance", "The covariance matrix of columns."),
    "correlation": Listed("covariance", "The correlation matrix of columns."),
    "queries": Listed(
        "marginals", "All tables of two (or k) categorical columns.", verb="answer_queries"
    ),
    "synthesize": Listed("marginals", "Synthetic rows of categorical columns."),
    "select_features": Listed("features", "The columns that explain another one best."),
    "decision_tree": Listed("features", "A small decision tree for a boolean column.", "tree"),
    "kmeans": Listed("kmeans", "Centers of clusters: a model that assigns rows."),
    "pca": Listed("covariance", "Principal components: a model that transforms rows."),
    "linear": Listed("estimators", "Linear regression."),
    "sparse_linear": Listed("estimators", "Linear regression on few of many columns."),
    "logistic": Listed("estimators", "Logistic regression."),
    "multinomial": Listed("estimators"),
    "classifier": Listed("estimators"),
    "nearest_centroid": Listed(
        "estimators",
        "The nearest class mean: for few rows.",
        fits=Fitted("NearestCentroid", "the mean of each class"),
    ),
    "random_forest": Listed("estimators", "Random trees with noisy leaves."),
    "mlp": Listed("estimators", "A small neural network."),
    "vote": Listed("models", room="queries"),
    "select_model": Listed("models"),
    "propose_test_release": Listed("robust", room="queries"),
    "bounded_local_sensitivity": Listed("robust", room="queries"),
    "study": Listed("estimators"),
    "purify": Listed("estimators"),
}

COMMANDS: Mapping[str, str] = {
    listed.command or name.replace("_", "-"): name for name, listed in INDEX.items() if listed.help
}
"""Tasks by the names of their commands."""


def verbs(room: str | None = None) -> dict[str, str]:
    """Return the names of the verbs (of one public module), with their files.

    Estimators, studies and `purify` are left out: they are defined elsewhere.
    """
    entries = ((listed.verb or name, listed) for name, listed in INDEX.items())
    return {
        name: listed.file
        for name, listed in entries
        if listed.file != "estimators" and room in {None, listed.room}
    }


def address(verb: str) -> str:
    """Return the expression by which a program names a verb.

    >>> address("mean"), address("vote")
    ('zd.mean', 'zd.queries.vote')
    """
    rooms = {listed.verb or name: listed.room for name, listed in INDEX.items()}
    return ".".join(filter(None, ["zd", rooms[verb], verb]))


@final
class _Tasks(Mapping[str, "Task"]):
    """All tasks; the file of one is imported when it is looked up."""

    def __getitem__(self, name: str) -> Task:
        task: Task = import_module(f"zerodelta.tasks.{INDEX[name].file}").TASKS[name]
        return task

    def __iter__(self) -> Iterator[str]:
        return iter(INDEX)

    def __len__(self) -> int:
        return len(INDEX)


TASKS: Mapping[str, Task] = _Tasks()


def task_recorded_as(name: str) -> Task | None:
    """Return the task whose releases are recorded under this name; None if there is none.

    >>> task_recorded_as("mean").error, task_recorded_as("answer_queries").error
    ('in the unit of the column', 'of a fraction')
    """
    if name in INDEX:
        return TASKS[name]
    return next((task for task in TASKS.values() if name in task.names), None)
