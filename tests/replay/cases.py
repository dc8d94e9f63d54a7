"""What each golden case hands over; those that read no rows, and why."""

from __future__ import annotations

from typing import Any

from golden import papers
from golden.golden import CASES

_VALUES = {
    *("purify", "paper.purify_ball", "paper.purify_choice"),
    *("paper.mix_choice", "paper.mix_on_grid"),
}
"""A caller's value goes through a channel: whatever it is."""
_SCORES = {
    *("select", "select, method=permute-and-flip", "select, method=exponential"),
    *("top_k, scores", "top_k, scores, method=joint", "top_k, scores, method=peeling"),
}

_FORMULAS = "a formula of public numbers"
_INNER = "a step inside a release, which is frozen as a whole"
_OPTIMIZER = "an optimizer of what a caller hands it, without rows and without noise"
NO_ROWS: dict[str, set[str]] = {
    _FORMULAS: {
        *papers.OF_FILES,
        *("paper.LqBall", "paper.ConvexSet", "paper.corollary_1", "paper.theorem_3_log_delta"),
        *("paper.printed_parameters", "plan, print", "calibrate", "is_purifier", "verify"),
        *("advise, mean", "advise, all tasks", "advise, error"),
    },
    _INNER: {"paper.proportional_sampling"},
    _OPTIMIZER: {"paper.frank_wolfe", "paper.sparse_recovery"},
    "its rows stay with their owner: it releases nothing": {"sklearn.BoundedScaler"},
}
"""Cases that hand no rows to a mechanism, by the reason."""
NOTHING = {name for names in NO_ROWS.values() for name in names}

_SAMPLE = "a sample of what noisy answers have left, before a channel"
BESIDE = {
    "Study": "made-up rows of a rehearsal",
    "answer_queries": _SAMPLE,
    "cdf": "where in its cell a row lies",
    "paper.dp_sgd": "batches, of public sizes",
    "paper.embedded_mwem": _SAMPLE,
    "paper.multiset_mwem": _SAMPLE,
    "paper.pure_dp_sgd": "batches, of public sizes",
    "paper.pure_propose_test_release": "the mixing of a draft that is frozen",
    "quantiles": "where in its cell a row lies",
    "select_model": "which block a row is in, and made-up rows of a rehearsal",
    "sklearn.RandomForestClassifier": "splits, which are public",
    "synthesize": _SAMPLE,
    "table": "where in its cell a row lies",
    "vote": "which block a row is in",
}
"""What else draws random bits, beside mechanisms and the number of a record."""

DEALT = {"vote", "select_model"}
"""Each row draws its block: where rows come or go is the end, for all others to keep theirs."""


def name_of(case: str) -> str:
    """Return what is called: a public name."""
    return case.partition(", ")[0]


def handed(case: str) -> str:
    """Return what a case hands over: "rows", "scores", a "value", or "nothing" beside a value."""
    if name_of(case) == "plan":
        return "nothing"
    if name_of(case) in _VALUES:
        return "value"
    return "scores" if case in _SCORES else "rows"


def asked_of(name: str) -> list[str]:
    """Return the cases of a public name that read rows."""
    return [case for case in CASES if name_of(case) == name and case not in NOTHING]


def varied(case: str) -> dict[str, Any]:
    """Return how every world of a case is."""
    return {"handed": handed(case), "last": name_of(case) in DEALT}
