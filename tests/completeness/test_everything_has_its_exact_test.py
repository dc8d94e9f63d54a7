"""Whatever draws, is drawn from, is published, read, claimed or promised is in its exact test.

Found by walking the package. What is new fails here, with the table to which it has to be added.
"""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import zerodelta as zd
from channels.cases import BODIES, MIXING, algorithm_one, algorithm_two
from cli.people import run
from completeness import walk
from completeness.drawn import HELD, NO_NOISE, WHERE, Adds, Chooses, mistakes
from completeness.laws import LAWS, SAMPLER_OF, stated, unexplained
from completeness.samplers import DRAWN_FROM
from completeness.watched import Draw, watched
from data.sources import WRITERS, written
from data.test_readers import KINDS, SOURCES, arrow
from exact.test_noise_tails import law as noise_law
from golden.golden import CASES, asked
from golden.seams import replayed
from mechanisms.test_keys_are_drawn_exactly import UNIVERSES
from privacy.test_claims import EXAMPLES
from privacy.theorem_cases import CASES as CERTIFICATES
from spaces.every_space import SPACES, enumerated
from spaces.test_totality import LATTICES
from zerodelta import spaces
from zerodelta.channels.channel import Mixing, NumericalError, Purifier
from zerodelta.channels.kernels import SmoothMix
from zerodelta.channels.mixes import ProfileMix
from zerodelta.data.arrays import FILES, stores_names
from zerodelta.data.spark import spark_reader
from zerodelta.exact.bits import ReplayBits
from zerodelta.exact.noise_tails import NOISE_LAWS, Law, NoiseLaw
from zerodelta.paper.convex_sets import LqBall
from zerodelta.privacy.claims import Claim
from zerodelta.privacy.composition import simplest
from zerodelta.privacy.theorems import THEOREMS
from zerodelta.privacy.verify import base_claim
from zerodelta.spaces import Finite, FiniteSpace, Space, WithExtra, is_known
from zerodelta.spaces.keys import KeyUniverse

LISTED = [
    pytest.param(held, id=f"{kind.__name__}-{place}")
    for kind, entries in HELD.items()
    if not isinstance(entries, str)
    for place, held in enumerate(entries)
]


# -- what draws -----------------------------------------------------------------------------------


def unlisted() -> list[str]:
    """Return a line for each place that draws, and that no exact test is named for."""
    return walk.missing(walk.drawing(), HELD.keys() | NO_NOISE.keys(), file=WHERE, name="HELD")


def test_every_place_that_draws_is_held_to_a_law() -> None:
    assert not unlisted(), "\n".join(unlisted())
    drawing = walk.drawing()
    gone = [walk.name_of(each) for each in (*HELD, *NO_NOISE) if each not in drawing]
    assert not gone, f"these draw nothing: take them out of HELD and NO_NOISE in {WHERE}: {gone}"


@pytest.mark.parametrize("held", LISTED)
def test_what_is_drawn_is_the_law_of_the_theorem(held: Adds | Chooses) -> None:
    found = mistakes(held)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("held", LISTED)
def test_the_claim_of_a_mechanism_is_what_its_step_proves(held: Adds | Chooses) -> None:
    if hasattr(held.mechanism, "claim"):
        step = held.step(held.mechanism) if isinstance(held, Adds) else held.mechanism.step()
        assert simplest(base_claim((step,))) == held.mechanism.claim


@pytest.mark.parametrize("held", LISTED)
def test_the_law_that_intervals_rest_on_is_the_law_that_is_drawn(held: Adds | Chooses) -> None:
    if not hasattr(held.mechanism, "law"):
        return
    assert isinstance(held, Adds)
    law = held.mechanism.law(unit=Fraction(1))
    (wanted,) = stated(held.step(held.mechanism))
    told = {"scale": law.scale, "dimension": law.dimension, "norm": law.norm}
    assert wanted.sampler is SAMPLER_OF[law.family]
    for name in told.keys() & wanted.numbers.keys():
        assert told[name] == wanted.numbers[name], name


def test_every_named_test_is_there() -> None:
    named = [*(each for each in HELD.values() if isinstance(each, str)), *DRAWN_FROM.values()]
    gone = [address for address in named if not walk.is_test(address)]
    assert not gone, f"no such test: {gone}"


def test_every_sampler_is_held_to_its_exact_law() -> None:
    found = walk.missing(
        walk.samplers(), DRAWN_FROM, file="tests/completeness/samplers.py", name="DRAWN_FROM"
    )
    assert not found, "\n".join(found)
    assert DRAWN_FROM.keys() == set(walk.samplers())


def test_every_theorem_states_what_is_drawn_for_it() -> None:
    new = THEOREMS.keys() - LAWS.keys()
    assert not new, f"add to LAWS in tests/completeness/laws.py what is drawn for {sorted(new)}"
    assert LAWS.keys() == THEOREMS.keys() == CERTIFICATES.keys() | {
        "units", "clipped-units", "unit-votes",
    }  # fmt: skip


# -- releases -------------------------------------------------------------------------------------


def what_is_wrong_with(name: str, called: Callable[..., Any] | None = None) -> list[str]:
    """Return a line for each draw of a golden release that its certificate is not about."""
    public, options = asked(name)
    with warnings.catch_warnings(), replayed(name.partition(", ")[0]), watched() as drawn:
        found = CASES[name](called or public, **options)
    release = getattr(found, "release_", found)
    if not isinstance(release, zd.records.Release):
        return []
    steps = [step for part in release.certificate.parts for step in part.steps]
    lines = unexplained(steps, drawn) + _unkept(release, drawn)
    return [f"{name}: {line}" for line in lines]


def _unkept(release: zd.records.Release, drawn: list[Draw]) -> list[str]:
    """Return a line for each law of released sums that nothing was drawn from."""
    if release.certificate.claim == zd.purification.PureDP(
        0
    ):  # of what is public there is no noise
        return []
    return [
        f"{sums.law} is what the intervals rest on, and it was not drawn"
        for sums in release.sums
        if not any(_is_of(draw, sums.law) for draw in drawn)
    ]


def _is_of(draw: Draw, law: NoiseLaw) -> bool:
    told = draw.numbers
    scale = told.get("variance", told.get("scale"))
    return draw.sampler is SAMPLER_OF[law.family] and (
        scale == law.scale
        and told.get("dimension", law.dimension) == law.dimension
        and told.get("norm", law.norm) == law.norm
    )


def test_every_release_draws_what_its_certificate_is_about_and_every_mechanism_has_one() -> None:
    with drawing_classes() as seen:
        wrong = [line for name in CASES for line in what_is_wrong_with(name)]
    assert not wrong, "\n".join(wrong)
    publishing = filter(walk.is_used, walk.mechanisms())
    missing = walk.missing(publishing, seen, file="tests/golden", name="CASES")
    assert not missing, "\n".join(missing)


@contextmanager
def drawing_classes() -> Iterator[set[type]]:
    """Collect the mechanisms that are handed bits meanwhile."""
    seen: set[type] = set()

    def noting(method: Any) -> Any:
        def noted(self: Any, *args: Any, **options: Any) -> Any:
            seen.add(type(self))
            return method(self, *args, **options)

        noted.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
        return noted

    places = {
        (owner, name)
        for kind in walk.mechanisms()
        for name in walk.draws(kind)
        for owner in kind.__mro__
        if name in vars(owner)
    }
    with ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(patch.object(owner, name, noting(vars(owner)[name])))
        yield seen


# -- channels, spaces, readers, claims, laws of noise ---------------------------------------------

OF_THEIR_OWN: dict[Any, str] = {
    **{kind: str(HELD[kind]) for kind in (ProfileMix, SmoothMix, NumericalError)},
    LqBall: "paper/test_convex_sets.py::test_any_object_becomes_a_point_of_the_ball",
    spark_reader: "data/test_spark.py::test_cells_of_every_physical_type_are_read_as_from_a_table",
}
"""What is built otherwise than the rest of its kind, and the exact test of it."""

_ALGORITHMS = [
    algorithm_one(BODIES["grid-1d"], base=Fraction(1), extra=Fraction(1), log_delta=-4.0),
    algorithm_two(2, base=Fraction(1, 10), extra=Fraction(1, 10), log_delta=-5.0),
]


def check(base: type, instances: Iterable[Any], *, file: str, name: str) -> None:
    """Check that every class of this kind has an instance in the table of its exact test."""
    listed = {type(each) for each in instances} | OF_THEIR_OWN.keys()
    found = walk.missing(walk.subclasses(base), listed, file=file, name=name)
    assert not found, "\n".join(found)


def test_every_channel_is_enumerated() -> None:
    every = [*MIXING.values(), *_ALGORITHMS]
    check(Purifier, every, file="tests/channels/cases.py", name="MIXING")
    assert {*map(type, MIXING.values())} <= set(walk.subclasses(Mixing))


def test_every_space_is_given_any_object() -> None:
    check(Space, SPACES, file="tests/spaces/every_space.py", name="SPACES")


def test_every_finite_space_is_enumerated() -> None:
    every = [space for space, _ in enumerated()]
    check(FiniteSpace, every, file="tests/spaces/every_space.py", name="enumerated")


@pytest.mark.parametrize("space", SPACES, ids=lambda space: repr(space)[:60])
def test_a_value_of_every_space_is_planned_published_verified_and_saved(
    space: Space, tmp_path: Path
) -> None:
    assert is_known(space), f"decorate {type(space).__name__} with @trusted_space, above all others"
    claim = zd.ApproxDP("1/2", -1e5)
    last = space.element(space.size - 1) if isinstance(space, FiniteSpace) else None
    for number, value in enumerate((None, last)):
        release = zd.purify(value, space=space, claim=claim, epsilon=1)
        zd.verify(release.certificate, epsilon=1)
        assert space.contains(release.value)
        release.save(file := tmp_path / f"{number}.json")
        loaded = zd.load(file).value
        assert type(loaded) is type(release.value)
        assert np.array_equal(loaded, release.value)


def test_a_space_of_someone_else_is_not_known() -> None:
    """Whatever it says of itself: a subclass may publish anything."""
    names = {"__slots__": (), "__module__": Finite.__module__, "__qualname__": "Finite"}
    other = type("Finite", (Finite,), names)(3)
    for space in (other, LqBall(2, 1, norm=3), object(), None):
        assert not is_known(space)
    with pytest.raises(zd.errors.ParameterError, match="no subclass"):
        zd.plan(other, epsilon=1)


def test_every_space_is_offered() -> None:
    within = {WithExtra}  # made by studies
    own = [kind for kind in walk.subclasses(Space) if kind.__module__.startswith(spaces.__name__)]
    missing = [
        kind.__name__ for kind in own if kind not in within and kind.__name__ not in spaces.__all__
    ]
    assert not missing, f"add {missing} to __all__ in src/zerodelta/spaces/__init__.py"


def test_every_lattice_is_given_any_object() -> None:
    every = [kind for kind in walk.subclasses(object) if {"points", "quantize"} <= {*dir(kind)}]
    file, listed = "tests/spaces/test_totality.py", {*map(type, LATTICES)}
    found = walk.missing(every, listed, file=file, name="LATTICES")
    assert not found, "\n".join(found)
    assert listed == set(every)


def test_every_universe_of_keys_is_enumerated() -> None:
    file = "tests/mechanisms/test_keys_are_drawn_exactly.py"
    check(KeyUniverse, UNIVERSES, file=file, name="UNIVERSES")


def test_every_reader_hands_out_the_same_cells(tmp_path: Path) -> None:
    listed = walk.readers_of(SOURCES.values(), tmp_path) | OF_THEIR_OWN.keys()
    file = "tests/data/test_readers.py"
    name = "SOURCES (of a file: its ending to FILES in data/arrays.py and to WRITERS)"
    found = walk.missing(walk.readers(), listed, file=file, name=name)
    assert not found, "\n".join(found)


def test_every_format_of_files_is_tried_documented_and_taken_by_the_command_line(
    tmp_path: Path,
) -> None:
    tried = {FILES[ending] for ending in WRITERS}
    data = (walk.TESTS.parent / "docs" / "data.md").read_text(encoding="utf-8")
    for ending, reader in FILES.items():
        assert reader in tried, f"add {ending!r} to WRITERS in tests/data/sources.py"
        assert f"`{ending}`" in data, f"add `{ending}` to the table of sources in docs/data.md"
    for ending in WRITERS:
        path, schema = written(ending, arrow(), tmp_path), tmp_path / f"{ending}.toml"
        header = () if stores_names(path) else ("--header",)
        code, told = run("init", path, "--schema", schema, *header)
        assert code == 0, told
        text = schema.read_text(encoding="utf-8")
        assert [name for name in KINDS if f"# {name} = " not in text] == []


def test_every_claim_obeys_the_laws_of_claims() -> None:
    check(Claim, EXAMPLES.values(), file="tests/privacy/test_claims.py", name="EXAMPLES")


def test_every_class_with_a_test_of_its_own_has_it() -> None:
    assert set(OF_THEIR_OWN) <= {*walk.classes(), *walk.readers()}
    gone = [address for address in OF_THEIR_OWN.values() if not walk.is_test(address)]
    assert not gone, f"no such test: {gone}"


FAMILIES = sorted({family for family, _ in NOISE_LAWS})


def test_every_law_of_noise_has_a_sampler() -> None:
    missing = walk.missing(
        walk.subclasses(Law),
        NOISE_LAWS.values(),
        file="src/zerodelta/exact/noise_tails.py",
        name="NOISE_LAWS",
    )
    assert not missing, "\n".join(missing)
    new = set(FAMILIES) - SAMPLER_OF.keys()
    assert not new, f"add {new} to SAMPLER_OF in tests/completeness/laws.py"
    assert SAMPLER_OF.keys() == set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_the_tail_of_a_law_is_that_of_its_sampler(family: str, norm: float) -> None:
    """What lies outside of the interval of a coordinate, counted among real draws."""
    if family != "k-norm" and norm != 1:
        return
    law = noise_law(family, Fraction(9, 2), 2 if family in ("counts", "k-norm") else 1, norm=norm)
    radius = law.integer_radius(Fraction(3, 10))
    outside = sum(abs(each) > radius for each in _drawn(law, _DRAWS))
    expected = float(law.tail(radius + Fraction(1, 2)).mid())
    above = (outside - _DRAWS * expected) / math.sqrt(_DRAWS * expected * (1 - expected))
    assert above < 5
    assert above > -5 or family == "matrix", "the tail is a bound for all forms, not an equality"


@pytest.mark.parametrize(("family", "norm"), NOISE_LAWS)
def test_error_and_variance_of_a_law_are_those_of_its_sampler(family: str, norm: float) -> None:
    together = 3 if family in ("counts", "k-norm") else 1
    law = noise_law(family, 40, together, norm=norm)
    drawn = _drawn(law, _DRAWS)
    assert law.error() == pytest.approx(sum(map(abs, drawn)) / _DRAWS, rel=0.1)
    variance = sum(each**2 for each in drawn) / _DRAWS
    assert law.covariance([1], [1]) == pytest.approx(variance, rel=0.2)


_DRAWS = 3000


def _drawn(law: Law, draws: int) -> list[int]:
    """One coordinate of so many draws from the sampler of a law."""
    sampler, bits = SAMPLER_OF[law.family], ReplayBits("tails")
    told = {"scale": law.scale, "dimension": law.dimension, "norm": law.norm, "size": draws}
    wanted = {name: told[name] for name in inspect.signature(sampler).parameters if name in told}
    if "size" in wanted:
        return [int(each) for each in sampler(**wanted, bits=bits).reshape(draws, -1)[:, 0]]
    return [int(sampler(**wanted, bits=bits)[0]) for _ in range(draws)]
