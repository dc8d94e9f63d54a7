"""What verbs have in common is written once, and `help()` shows it at each of them."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import zerodelta as zd
import zerodelta.sklearn
from zerodelta.data.arrays import DEFAULT_MISSING
from zerodelta.errors import NO_VALUE
from zerodelta.spine.verbs import STANDARD, Paying, completed, inherited
from zerodelta.tasks.registry import TASKS

PACKAGE = Path(zd.__file__).resolve().parent
SHARED = re.findall(r"^(\w+) : .*\n((?:    .*\n)+)", STANDARD, re.MULTILINE)
VERBS = {task.verb.__name__: task.verb for task in TASKS.values() if task.verb is not None}


def told(text: str | None) -> dict[str, str]:
    """Return what a docstring says of each parameter, one line each."""
    found = re.search(r"^Parameters\n-{10}\n(.*?)(?=\n\n|\Z)", text or "", re.M | re.S)
    items = re.findall(r"^(\S.*?) : .*\n((?:    .*(?:\n|\Z))+)", found[1] if found else "", re.M)
    return {name: " ".join(said.split()) for names, said in items for name in names.split(", ")}


@pytest.mark.parametrize(("name", "said"), SHARED)
def test_what_verbs_have_in_common_is_written_once(name: str, said: str) -> None:
    words = " ".join(said.split())
    files = [path for path in PACKAGE.rglob("*.py") if words in " ".join(path.read_text().split())]
    assert [path.relative_to(PACKAGE).as_posix() for path in files] == ["spine/verbs.py"]


@pytest.mark.parametrize("name", VERBS)
def test_help_of_a_verb_says_of_each_parameter_what_it_is(name: str) -> None:
    parameters = inspect.signature(VERBS[name]).parameters
    said = told(inspect.getdoc(VERBS[name]))
    assert list(said) == list(parameters)
    assert all(said.values())
    assert Paying.__annotations__.keys() <= parameters.keys()
    for shared, words in SHARED[-2:]:  # a study pays later
        assert said[shared] == " ".join(words.split()) or name == "Study"


def _public() -> Iterator[Any]:
    for home in (zd, zerodelta.sklearn):
        for name in home.__all__:
            each = getattr(home, name)
            if inspect.isroutine(each) or inspect.isclass(each):
                yield each.__init__ if inspect.isclass(each) else each


def test_no_signature_shows_where_an_object_lies_in_memory() -> None:
    for each in _public():
        assert not re.search(r"\bat 0x", str(inspect.signature(each))), each.__qualname__
    assert "missing: 'Any' = \"skip\" or None" in str(inspect.signature(zd.mean))


@pytest.mark.parametrize("default", [DEFAULT_MISSING, NO_VALUE])
def test_a_default_that_nobody_can_pass_stays_the_same_object(default: Any) -> None:
    assert copy.deepcopy(default) is copy.copy(default) is default
    assert pickle.loads(pickle.dumps(default)) is default


def test_the_verb_that_one_is_like_goes_before_what_is_so_everywhere() -> None:
    like = "A.\n\nParameters\n----------\nb, again : int\n    Its own.\n"
    own = "B.\n\nReturns\n-------\nint\n    One."
    text = completed(own, like, STANDARD, parameters=["again", "a", "epsilon", "b"])
    assert list(told(text)) == ["again", "epsilon", "b"]
    assert told(text)["again"] == told(text)["b"] == "Its own."
    assert str(text).endswith("\n\nReturns\n-------\nint\n    One.")


def test_a_class_takes_over_attributes_and_notes_on_other_topics() -> None:
    def text(attribute: str, *notes: str) -> str:
        lines = [f"**{topic}**: of {attribute}." for topic in notes]
        parts = ["C.", f"Attributes\n----------\n{attribute} : int\n    One.", "Notes\n-----"]
        return "\n\n".join([*parts[:2], "\n".join([parts[2], *lines]), "Examples\n--------\n>>> 1"])

    made = inherited(text("a_", "Error"), text("b_", "Error", "Public"), parameters=[])
    assert made == (
        "C.\n\nAttributes\n----------\na_ : int\n    One.\nb_ : int\n    One.\n\n"
        "Notes\n-----\n**Error**: of a_.\n**Public**: of b_.\n\nExamples\n--------\n>>> 1"
    )


@pytest.mark.parametrize("made", [completed, inherited])
def test_nothing_is_made_up_where_docstrings_were_left_out(made: Any) -> None:
    assert made(None, STANDARD, parameters=["epsilon"]) is None
    assert made("Add.", None, parameters=["epsilon"]) == "Add."
