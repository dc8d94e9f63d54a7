"""Compare the widths of 95 % intervals by city with OpenDP's, for `bench/tables.py`.

OpenDP states an accuracy at α = 0.05 (`summarize`), for counts and sums; an interval is twice as
wide.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from bench import tables_peers as peers
from bench.tables_ours import CITIES, KINDS, made_people, opened
from bench.tables_report import EPSILON, RELATIONS, Report, header, row

import zerodelta as zd


def our_widths(relation: str) -> Mapping[str, float]:
    """Mean widths over the cities: of counts alone, and of counts and sums together."""
    people, widths = opened(made_people().select(*KINDS), KINDS, relation), {}
    alone = zd.count(people, by="city", epsilon=EPSILON).to_frame()
    both = zd.table(people, by="city", of={"income": ["sum", "mean"]}, epsilon=EPSILON).to_frame()
    for name, frame, column in (
        ("count, alone", alone, "count"),
        ("count, with the sum", both, "count"),
        ("sum", both, "income_sum"),
        ("mean", both, "income_mean"),
    ):
        spread = frame[f"{column}_upper"].to_numpy() - frame[f"{column}_lower"].to_numpy()
        widths[name] = float(np.mean(spread.astype(float)))
    return widths


def opendp_widths(relation: str) -> Mapping[str, float]:
    people = peers.context(made_people(), relation, EPSILON)
    reach = peers.opendp_accuracies(people, peers.every(city=CITIES))
    names = ("count, alone", "count, with the sum", "sum")
    return {name: 2 * float(half_width) for name, half_width in zip(names, reach, strict=True)}


def widths(report: Report, runs: int) -> None:
    ours, theirs = our_widths(report.relation), opendp_widths(report.relation)
    print(f"\n### 95 % intervals by city, {RELATIONS[report.relation]}, ε = {EPSILON}: widths\n")
    header(["interval of", "zerodelta", "OpenDP", "OpenDP's over ours"])
    for name, width in ours.items():
        other = theirs.get(name)
        cells = [f"{other:,.1f}", f"{other / width:.2f}"] if other else ["none", ""]
        print(row([f"a {name}", f"{width:,.1f}", *cells]))
