"""A case of every channel: `plan, Class of the channel` checks that the plan has chosen that one.

`purify` is asked where one call does the same. Channels that no plan chooses are in the cases that
`ELSEWHERE` names.
"""

from __future__ import annotations

from typing import Any

import zerodelta as zd
from golden.verbs import Case

_LITTLE: dict[str, Any] = {"base": zd.GaussianDP("1/10"), "epsilon": 1}

ELSEWHERE = {
    "AlgorithmOne": "paper.purify_ball",
    "AlgorithmTwo": "paper.purify_choice",
    "NumericalError": "sklearn.LogisticRegression, method=objective",
}
"""Where a channel is asked that no plan chooses."""


def _published(kind: str, space: Any, value: Any, /, **given: Any) -> Case:
    def case(f: Any, **o: Any) -> Any:
        made = f(space, **{**_LITTLE, **given}, **o)
        assert type(made.purifier).__name__ == kind, f"the plan has chosen {made.purifier}"
        return made.purify(value)

    return case


def _named(**cases: tuple[Any, ...]) -> dict[str, Case]:
    return {
        f"plan, {name.replace('__', ', ')}": _published(name.split("__")[0], *given[:2], **given[2])
        for name, given in cases.items()
    }


_PROFILE: dict[str, Any] = {"profile": ["1/10000"] * 3, "base": None}
_SMOOTH: dict[str, Any] = {"channel": "smooth", "sensitivity": "1/500", "base": None}

CASES: dict[str, Case] = {
    **_named(
        FiniteMix=(zd.Finite(["a", "b", "c"]), "b", {}),
        FiniteMix__subsets=(zd.purification.Subsets(of=4, size=2), [1, 3], {}),
        FiniteMix__multiset=(zd.purification.Multiset(3, 2), [0, 2], {}),
        PriorMix=(zd.Finite(4), 2, {"prior": [4, 3, 2, 1]}),
        ProfileMix=(zd.Finite(3), 1, _PROFILE),
        GridMix=(zd.Box(-1, "1/3"), -0.2, {"channel": "grid"}),
        GridMix__two=(zd.Box([0, -1], [1, 0]), [0.25, -0.5], {"channel": "grid"}),
        UnequalGridMix=(zd.Box([0, -1], [1, 5]), [0.25, 2.0], {"channel": "grid"}),
        LocalUniformMix=(zd.Box(0, 1), 0.7, {"channel": "local-uniform"}),
        GaussianMix=(zd.Ball(2, 1), [0.3, 0.4], {"channel": "gaussian"}),
        GaussianMix__center=(zd.Ball(1, 1, center=5), 5.5, {"channel": "gaussian"}),
        LaplaceMix=(zd.Ball(2, 1, norm=1), [0.3, 0.4], {"channel": "laplace"}),
        KernelMix=(zd.Ball(2, 1), [0.3, 0.4], {"channel": "kernel"}),
        GridMix__ball=(zd.Ball(2, 1), [0.3, 0.4], {"channel": "grid"}),
        SmoothMix=(zd.Ball(3, 1), [0.3, 0.4, 1.5], _SMOOTH),
    ),
    "plan, print": lambda f: repr(f(zd.Ball(10, 1), epsilon=1, sensitivity="1/500")).splitlines(),
    "purify": lambda f: f(
        "b", space=zd.Finite(["a", "b", "c"]), claim=zd.GaussianDP("1/10"), epsilon=1
    ),
    "purify, box": lambda f: f(
        [0.5, 0.25], space=zd.Box(0, 1, dimension=2), claim=zd.purification.ZCDP("1/200"), epsilon=1
    ),
    "purify, ball": lambda f: f(
        [0.5, 0.25], space=zd.Ball(2, 1), claim=zd.ApproxDP("1/2", -30.0), epsilon=1
    ),
    "purify, out of the space": lambda f: f(
        object(),
        space=zd.Ball(2, 1),
        claim=zd.purification.RDP({2: "1/100", 32: "1/10"}),
        epsilon=2,
    ),
}
