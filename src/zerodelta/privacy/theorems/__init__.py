"""Look up theorems by their labels, and explain the steps that cite them.

A theorem is an object of public numbers, and its inequality is a method: the mechanism that
calibrates and the verifier that re-checks call the same one. No sampler is imported.
"""

from __future__ import annotations

import inspect
import re

from zerodelta.privacy.readable import filled, shown
from zerodelta.privacy.steps import Step
from zerodelta.privacy.theorems import mixing, noise, regression, smoothing, subsampling, testing
from zerodelta.privacy.theorems.theorem import Theorem

_FAMILIES = (noise, subsampling, testing, regression, mixing, smoothing)

THEOREMS: dict[str, type[Theorem]] = {
    entry.label: entry
    for family in _FAMILIES
    for entry in vars(family).values()
    if inspect.isclass(entry) and issubclass(entry, Theorem) and not inspect.isabstract(entry)
    if hasattr(entry, "label")
}
"""All theorems that a certificate may cite, by label."""


def explain_step(step: Step) -> str:
    """Return a sentence about a step, with its theorem and all of its numbers."""
    numbers = {name: value for name, value in step.numbers.items() if name != "count"}
    theorem = THEOREMS.get(step.theorem)
    if theorem is None:
        text = filled(f"theorem {step.theorem}.", numbers)
    else:
        text = theorem.explain(numbers)
    count = step.numbers.get("count", 1)
    return text if count == 1 else f"{shown(count)} times: {text}"


def heading_of(theorem: type[Theorem]) -> str:
    """Return the heading of a theorem's proof in docs/theory.md: its section, and all labels there.

    >>> heading_of(THEOREMS["grid-mixing"])
    'B2. grid-mixing, unequal-grid-mixing'
    """
    labels = [label for label, other in THEOREMS.items() if other.section == theorem.section]
    return f"{theorem.section}. {', '.join(labels)}"


def anchor_of(theorem: type[Theorem]) -> str:
    """Return the file and anchor of a theorem's proof.

    >>> anchor_of(THEOREMS["gaussian-net"])
    'docs/theory.md#rv-gaussian-net'
    """
    slug = re.sub(r"[^a-z0-9 -]", "", heading_of(theorem).lower())
    return f"docs/theory.md#{slug.replace(' ', '-')}"
