"""A case of every internal query of a study, and of every way to publish."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import zerodelta as zd
from golden.rows import LABELS, NUMBERS, people
from golden.verbs import UNIT, Case

_COLUMNS = ["age", "income", "member"]


def _asking(
    program: Callable[[Any], Any],
    publish: Any,
    *,
    data: Callable[[], Any] = lambda: NUMBERS,
    **given: Any,
) -> Case:
    return lambda f, **o: f(data(), epsilon=1, publish=publish, **given, **o).run(program)


def _minimizing(objective: Callable[[], Any], ball: Any, given: dict[str, Any], **how: Any) -> Case:
    return lambda f, **o: f(_EXAMPLES, epsilon=1, publish=ball, rounds=3, **given, **o).minimize(
        objective(), **how
    )


def _with_block(f: Any, **o: Any) -> Any:
    study = f(NUMBERS, epsilon=1, publish=zd.Finite(4), rounds=1, bounds=(0, 1), **o)
    with study as asked:
        asked.publish(3 * asked.mean(0))
    return study.release


def _failing(asked: Any) -> Any:
    asked.mean(0)
    raise ValueError("a mistake")


_EXAMPLES = np.column_stack([NUMBERS, LABELS])
_BOX, _BALL, _YES = zd.Box(0, 1), zd.Ball(3, 2), zd.Finite(["no", "yes"])
_UNIT_BOX: dict[str, Any] = {"bounds": (0, 1)}

_CASES: dict[str, Case] = {
    "count": _asking(lambda s: s.count(lambda r: r[:, 0] > 0.5) / 120, _BOX, rounds=1),
    "sum": _asking(lambda s: s.sum(0) / 120, _BOX, rounds=1, **_UNIT_BOX),
    "mean": _asking(lambda s: s.mean([0, 1, 2]), zd.Box(0, 1, dimension=3), rounds=1, **_UNIT_BOX),
    "mean of a function": _asking(
        lambda s: s.mean(lambda r: r[:, :2] * r[:, 1:], norm_bound=2),
        zd.Ball(2, 2),
        rounds=1,
    ),
    "histogram": _asking(
        lambda s: int(np.argmax(s.histogram(lambda r: (4 * r[:, 0]).astype(int), size=4))),
        zd.Finite(4),
        rounds=1,
    ),
    "covariance": _asking(lambda s: np.linalg.norm(s.covariance(data_norm=2)) / 4, _BOX, rounds=1),
    "gradient": _asking(lambda s: s.gradient(lambda r: r - 0.5, clip=1), zd.Ball(3, 1), rounds=1),
    "select": _asking(
        lambda s: s.select([0, 1, 2]),
        zd.Finite(3),
        rounds=1,
        selects=True,
        **_UNIT_BOX,
    ),
    "shares": _asking(
        lambda s: [s.mean(0), s.mean(1)],
        zd.Box(0, 1, dimension=2),
        rounds=[1, 2],
        **_UNIT_BOX,
    ),
    "subsets": _asking(
        lambda s: np.argsort(s.mean([0, 1, 2]))[1:],
        zd.purification.Subsets(of=3, size=2),
        rounds=1,
        **_UNIT_BOX,
    ),
    "multiset": _asking(lambda s: [0, 1], zd.purification.Multiset(3, 2), rounds=1, **_UNIT_BOX),
    "otherwise": lambda f, **o: f(
        NUMBERS, epsilon=1, publish=_YES, rounds=1, otherwise="unknown", **_UNIT_BOX, **o
    ).run(_failing, rehearse=False),
    "with": _with_block,
    "one row at a time": _asking(
        lambda s: s.mean(lambda r: r[:, 0] ** 2, bounds=(0, 1)), _BOX, rounds=1, rowwise=True
    ),
    "named columns": _asking(
        lambda s: "yes" if s.mean("age") > 30 else "no",
        _YES,
        data=lambda: people()[_COLUMNS],
        rounds=2,
        functions=False,
    ),
    "diagnostics": _asking(
        lambda s: "yes" if s.mean("income") > 30 else "no",
        _YES,
        data=lambda: people()[_COLUMNS],
        rounds=1,
        diagnostics="1/10",
    ),
    "unit": _asking(
        lambda s: "yes" if s.mean("age") > 30 else "no",
        _YES,
        data=lambda: people(**UNIT)[_COLUMNS],
        rounds=1,
    ),
    "where": _asking(
        lambda s: "yes" if s.mean("income") > 30 else "no",
        _YES,
        data=lambda: people().where("member")[_COLUMNS],
        rounds=1,
    ),
    "minimize, logistic": _minimizing(zd.models.Logistic, _BALL, {"functions": False}, data_norm=2),
    "minimize, hinge": _minimizing(zd.models.Hinge, _BALL, {}, data_norm=2, clip="1/2"),
    "minimize, squared": _minimizing(
        lambda: zd.models.Squared(label_bound=1), _BALL, {}, data_norm=2, momentum="1/2"
    ),
    "minimize, huber": _minimizing(
        lambda: zd.models.Huber(label_bound=1, threshold="1/2"), _BALL, {}, data_norm=2
    ),
    "minimize, multinomial": _minimizing(
        lambda: zd.models.Multinomial(classes=(0, 1)), zd.Ball(6, 2), {}, data_norm=2
    ),
    "minimize, function": _minimizing(
        lambda: lambda theta, rows: theta - rows[:, :3], _BALL, {}, clip=1
    ),
    "minimize, network": _minimizing(
        lambda: zd.models.TanhNetwork(lower=(0, 0, 0), upper=(1, 1, 1), units=2), zd.Ball(11, 2), {}
    ),
}
CASES = {f"Study, {name}": case for name, case in _CASES.items()}
