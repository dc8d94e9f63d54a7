"""Find the number of internal queries from which a study has less noise: docs/study.md."""

from __future__ import annotations

import zerodelta as zd
from zerodelta.spaces import Space
from zerodelta.study.plan import Schedule, StudyPlan

EPSILONS = ("0.5", "1", "2")
QUERIES = 1000

PUBLISHED: dict[str, Space] = {
    "1 of 2": zd.Finite(2),
    "1 of 16": zd.Finite(16),
    "3 of 50": zd.purification.Subsets(of=50, size=3),
    "5 of 100": zd.purification.Subsets(of=100, size=5),
    "a point of the unit ball, d = 2": zd.Ball(2, 1),
    "a point of the unit ball, d = 10": zd.Ball(10, 1),
    "a point of the unit ball, d = 33": zd.Ball(33, 1),
}


def study_plan(space: Space, epsilon: str) -> StudyPlan:
    """Return the plan of a study of QUERIES queries at the default mixing probability."""
    return StudyPlan(
        publishing=zd.plan(space, epsilon=epsilon, mixing_probability="0.001"),
        rows=1,
        schedule=Schedule.of(QUERIES),
        selects=False,
        rowwise=True,
    )


def nats(plan: StudyPlan) -> float:
    """Return ln N of what is published: the logarithm of the channel's mass ratio."""
    return plan.publishing.compared[0].log_ratio


def table() -> list[str]:
    """Return the lines of the table as the docs show it."""
    lines = [
        "| published | nats | " + " | ".join(f"ε = {e}" for e in EPSILONS) + " | gain at 1000 |",
        "|---" * (len(EPSILONS) + 3) + "|",
    ]
    for name, space in PUBLISHED.items():
        plans = [study_plan(space, epsilon) for epsilon in EPSILONS]
        gain = plans[1].noise_by_basic_composition / plans[1].noise_per_query
        cells = [str(plan.break_even) for plan in plans]
        lines.append(f"| {name} | {nats(plans[1]):.1f} | {' | '.join(cells)} | {gain:.1f} × |")
    return lines


def main() -> None:
    print("Break-even number of queries, and at 1000 queries and ε = 1 how many times less noise")
    print("\n".join(table()))


if __name__ == "__main__":
    main()
