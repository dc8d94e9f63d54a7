"""A certificate is made of exactly these types, and judged by the text that it writes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import zerodelta as zd
from privacy.chains import CHAINS, data_of, resealed
from zerodelta.privacy.composition import compose, zcdp_cost
from zerodelta.privacy.parameters import as_log_delta
from zerodelta.privacy.readable import LARGEST_TEXT
from zerodelta.privacy.steps import Part, Step, from_hexadecimal, read_rational

LAPLACE = Step(theorem="rounded-laplace", numbers={"sensitivity": 1, "scale": 1})
GOOD = zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(LAPLACE,))
_set = object.__setattr__


class Generous(zd.purification.PureDP):  # type: ignore[misc]
    """Says 1 where it is compared, and 1/1000 where it is read."""

    __slots__ = ()

    def numbers(self) -> dict[str, Any]:
        return {"kind": "pure", "epsilon": Fraction(1, 1000), "bounded_range": 0}


class LooseGaussian(zd.GaussianDP):  # type: ignore[misc]
    """Has whatever profile it likes."""

    __slots__ = ()

    def log_delta(self, epsilon: Any) -> float:
        return -1e6


class LooseStep(Step):
    """A step that its author may change later."""

    __slots__ = ()


class LooseCertificate(zd.records.Certificate):  # type: ignore[misc]
    """A certificate that its author may change later."""

    __slots__ = ()


class Words(str):
    """Not plain text."""

    __slots__ = ()


def with_part(name: str, value: Any) -> zd.records.Certificate:
    """Return a good certificate in which a part was exchanged behind its back."""
    certificate = replace(GOOD)
    _set(certificate, name, value)
    return certificate


@pytest.mark.parametrize(
    "parts",
    [
        {"claim": Generous(1)},
        {"claim": zd.Finite(3)},
        {"steps": (LooseStep(theorem="rounded-laplace", numbers=LAPLACE.numbers),)},
        {"steps": [LAPLACE]},
        {"parts": [Part(steps=(LAPLACE,))], "steps": None},
        {"parts": ((LAPLACE,),), "steps": None},
        {"parts": (Part(steps=(LAPLACE,), epsilon=1),), "steps": None},  # type: ignore[arg-type]
        {"unit": Words("customer")},
        {"row": Words("one row")},
        {"public": ["a list"]},
        {"assumed": (Words("nothing"),)},
        {"assumed": (3,)},
        {"randomness": Words("operating system")},
        {"digest": Words(GOOD.digest)},
    ],
    ids=lambda parts: f"{next(iter(parts))} {type(next(iter(parts.values()))).__name__}",
)
def test_other_types_and_subclasses_are_refused_when_made_and_when_verified(
    parts: dict[str, Any],
) -> None:
    made: dict[str, Any] = {"claim": zd.purification.PureDP(1), "steps": (LAPLACE,), **parts}
    with pytest.raises(zd.errors.CertificateError, match="no proof is made of"):
        zd.records.Certificate(**made)
    name, value = next(iter(parts.items()))
    if name == "steps":
        name, value = "parts", (Part(steps=value),)
    with pytest.raises(zd.errors.CertificateError, match="no proof is made of"):
        zd.verify(with_part(name, value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theorem", Words("rounded-laplace")),
        ("neighbors", "replace"),
        ("status", "proven"),
        ("numbers", {"sensitivity": 1, "scale": 1}),
    ],
)
def test_the_parts_of_a_step_are_of_exact_types_too(name: str, value: Any) -> None:
    step = replace(LAPLACE)
    _set(step, name, value)
    with pytest.raises(zd.errors.CertificateError, match="no proof is made of"):
        zd.verify(with_part("parts", (Part(steps=(step,)),)))


def test_a_relation_that_is_none_of_ours_is_refused_even_if_all_share_it() -> None:
    class Fake:
        value = "replace"

    fake, claim, step = Fake(), zd.purification.PureDP(1), replace(LAPLACE)
    _set(claim, "neighbors", fake)
    _set(step, "neighbors", fake)
    with pytest.raises(zd.errors.CertificateError, match="no proof is made of"):
        zd.records.Certificate(claim=claim, steps=(step,))


def test_subclasses_of_certificates_and_texts_are_no_certificates() -> None:
    with pytest.raises(zd.errors.CertificateError, match="no proof is made of"):
        LooseCertificate(claim=zd.purification.PureDP(1), steps=(LAPLACE,))
    with pytest.raises(zd.errors.CertificateError, match="is a Words, not a certificate"):
        zd.verify(Words(GOOD.to_json()))
    with pytest.raises(zd.errors.CertificateError):
        zd.records.Certificate.from_json(Words(GOOD.to_json()))


def test_an_object_is_judged_by_what_it_writes() -> None:
    negative = zd.purification.PureDP(1)
    _set(negative, "exact_epsilon", Fraction(-1))
    with pytest.raises(zd.errors.CertificateError, match="epsilon"):
        zd.verify(zd.records.Certificate(claim=negative, steps=(LAPLACE,)))
    for row in ("two\nlines", "a bell \a", 'x\n  2. [proven] "checked"'):
        with pytest.raises(zd.errors.CertificateError, match="one plain line"):
            zd.verify(
                zd.records.Certificate(claim=zd.purification.PureDP(1), steps=(LAPLACE,), row=row)
            )
    found = zd.verify(GOOD)
    assert found == GOOD.claim
    assert found is not GOOD.claim


def test_numbers_of_a_subclass_are_written_as_the_numbers_they_are() -> None:
    class Sly(int):
        def __int__(self) -> int:
            return 1000

    step = Step(theorem="rounded-laplace", numbers={"sensitivity": Sly(2), "scale": Words("3")})
    assert {name: type(value) for name, value in step.numbers.items()} == {
        "sensitivity": int,
        "scale": str,
    }
    assert dict(step.numbers) == {"sensitivity": 2, "scale": "3"}


def test_no_proof_is_composed_of_a_subclass() -> None:
    for use in (
        lambda: compose(LooseGaussian(1), zd.purification.PureDP(1)),
        lambda: zcdp_cost(LooseGaussian(1)),
        lambda: zd.plan(zd.Finite(4), epsilon=1, base=LooseGaussian(1)),
        lambda: zd.purify(1, space=zd.Finite(4), claim=LooseGaussian(1), epsilon=1),
    ):
        with pytest.raises(zd.errors.ParameterError, match=r"claim|base"):
            use()


# How much there may be of it.


def test_a_text_of_more_than_ten_million_characters_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []
    monkeypatch.setattr("zerodelta.privacy.readable.json.loads", lambda *a, **k: read.append(a))
    with pytest.raises(zd.errors.CertificateError, match="at most 10000000 characters"):
        zd.verify(" " * (LARGEST_TEXT + 1))
    assert read == []


@pytest.mark.parametrize("exponent", ["e999999", "e-999999", "e5001", "e-5001"])
@pytest.mark.parametrize("place", ["claim", "step"])
def test_a_small_file_with_a_large_exponent_is_refused_before_it_is_a_number(
    exponent: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = data_of(GOOD)
    numbers = data["claim"] if place == "claim" else data["parts"][0]["steps"][0]["numbers"]
    numbers["epsilon" if place == "claim" else "scale"] = f"1{exponent}"
    made: list[Any] = []
    new = Fraction.__new__

    def recorded(kind: type[Fraction], *numbers: Any, **others: Any) -> Fraction:
        made.extend(numbers)
        return new(kind, *numbers, **others)

    text = resealed(data)
    assert len(text) < 1000
    monkeypatch.setattr(Fraction, "__new__", staticmethod(recorded))
    with pytest.raises(zd.errors.CertificateError, match="notation of a certificate"):
        zd.verify(text)
    assert made or place == "claim"  # the other numbers of a step are read before
    assert all(value == 1 for value in made)


@pytest.mark.parametrize("number", ["9" * 4001, "-" + "9" * 4001, "1e999999", "0.5", "NaN"])
def test_integers_too_long_to_write_and_floats_are_refused_by_the_reader(number: str) -> None:
    text = GOOD.to_json().replace('"scale": 1', f'"scale": {number}')
    assert text != GOOD.to_json()
    with pytest.raises(zd.errors.CertificateError, match=r"hexadecimal|is a float"):
        zd.verify(text)


def test_names_that_occur_twice_are_refused_at_every_depth() -> None:
    text = CHAINS["Finite"].certificate().to_json()
    for name in ("schema", "epsilon", "theorem", "mu_squared", "size", "digest"):
        assert text.count(f'"{name}":') >= 1
        with pytest.raises(zd.errors.CertificateError, match="twice"):
            zd.verify(text.replace(f'"{name}":', f'"{name}": 1, "{name}":', 1))


# The notation.


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (3, Fraction(3)),
        ("3", Fraction(3)),
        ("-7/2", Fraction(-7, 2)),
        (repr(1e-300), Fraction("1e-300")),
        (repr(1e16), Fraction(10**16)),
        (repr(-30.0), Fraction(-30)),
        (repr(5e-324), Fraction("5e-324")),
        ("1e5000", Fraction(10) ** 5000),
        ("2/4", Fraction(1, 2)),
    ],
)
def test_what_the_writer_writes_is_read(written: Any, number: Fraction) -> None:
    assert read_rational(written) == number


@pytest.mark.parametrize(
    "text", ["0x", "0x0", "0X10", "0x_1", "0x1_0", "0xG", "-0x1", "0x٣", "0x1\n"]
)
def test_hexadecimal_is_read_only_as_it_is_written(text: str) -> None:
    assert from_hexadecimal(text) is text


def test_hexadecimal_has_at_most_two_to_the_24_bits() -> None:
    largest = "0x" + "f" * (1 << 22)
    assert from_hexadecimal(largest) == (1 << (1 << 24)) - 1
    assert from_hexadecimal(largest + "f") == largest + "f"


@pytest.mark.parametrize("text", ["-1_0", "-١", "-1e٢", "-1_0.5", "- 1"])
def test_a_log_delta_is_read_like_any_other_number(text: str) -> None:
    with pytest.raises(zd.errors.ParameterError, match="log_delta"):
        as_log_delta(text)


def test_a_log_delta_of_a_certificate_is_the_float_that_was_written() -> None:
    for value in (-0.1, -30.0, -1e-300, -123456.789):
        assert as_log_delta(repr(value)) == value
    assert as_log_delta("-1/2") == -0.5
