"""Numbers and sentences as people read them: short, and never a rounded number called exact."""

from __future__ import annotations

import decimal
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from zerodelta.privacy.step import whole

_LONGEST = 12
"""A number of more characters than this is rounded for people; the certificate keeps it exact."""


LARGE = 5
"""An ε above this is asked about: e^5/(1 + e^5) is more than 99 %."""


def large(epsilon: Fraction) -> str:
    """Return what to say of an ε, for replaced rows, that protects hardly anybody; mostly nothing.

    >>> large(Fraction(5)), large(Fraction(20))[:20]
    ('', 'ε = 20 is large: a s')
    """
    if epsilon <= LARGE:
        return ""
    return (
        f"ε {equals(epsilon)} is large: a suspicion of 50 % about one person may rise to more than "
        f"99 %; ask why it has to be more than {LARGE}"
    )


def shown(value: Any) -> str:
    """Return a number as people read it: exact if that is short, else rounded and marked so.

    >>> shown(Fraction(1, 3)), shown("83/100"), shown(Fraction(0.83)), shown([1, "2/3"])
    ('1/3', '0.83', '≈ 0.83', '[1, 2/3]')
    """
    if isinstance(value, list):
        items = [shown(item) for item in value]
        return f"[{', '.join(items if len(items) <= 6 else [*items[:3], '…', items[-1]])}]"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, Fraction)):
        return _short(Fraction(value))
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]+/[0-9]*[1-9][0-9]*", value):
        return _short(Fraction(value))
    size = whole(value)
    return str(value) if size is value else _short(Fraction(size))


def equals(value: Any) -> str:
    """Return "= x" if the number is shown exactly, "≈ x" if it had to be rounded.

    >>> equals(Fraction(83, 100)), equals(Fraction(0.83)), equals(Fraction(2, 3))
    ('= 0.83', '≈ 0.83', '= 2/3')
    """
    text = shown(value)
    return text if text.startswith("≈") else f"= {text}"


def _short(exact: Fraction) -> str:
    if exact.denominator == 1 and abs(exact) < 10**_LONGEST:
        return str(exact.numerator)
    near = _rounded(exact, _LONGEST)
    if Fraction(near) == exact:
        return f"{near:f}" if -5 < near.adjusted() < _LONGEST else f"{near:e}"
    if max(exact.denominator, abs(exact.numerator)) < 10**6:
        return str(exact)
    return f"≈ {_rounded(exact, 6):g}"


def _rounded(exact: Fraction, digits: int) -> decimal.Decimal:
    context = decimal.Context(prec=digits, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    # through Decimal(int), which no limit on the length of a number's text applies to
    above, below = decimal.Decimal(exact.numerator), decimal.Decimal(exact.denominator)
    return context.divide(above, below).normalize(context)


def filled(template: str, numbers: Mapping[str, Any]) -> str:
    """Put the numbers into the sentence, and those it does not mention behind it."""
    mentioned = set(re.findall(r"\{(\w+)\}", template))

    def number(match: re.Match[str]) -> str:
        value = numbers.get(match["name"], f"({match['name']} not stated)")
        return equals(value) if match["equals"] else shown(value)

    text = re.sub(r"(?P<equals>= )?\{(?P<name>\w+)\}", number, template)
    rest = [f"{name} {equals(v)}" for name, v in numbers.items() if name not in mentioned]
    if not rest:
        return text
    return f"{text[:-1]}; {', '.join(rest)}." if text[-1] == "." else f"{text} ({', '.join(rest)})"
