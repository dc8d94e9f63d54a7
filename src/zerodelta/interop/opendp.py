"""OpenDP: remove δ from a measurement, and use our tasks as measurements.

A measurement's privacy map is OpenDP's statement of what it satisfies: ρ, (ε, δ), a profile or a
Rényi curve. It is read at every distance anew, so that the map of what comes out is right too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, TypeAlias

from zerodelta.channels.channel import smallest_epsilon
from zerodelta.channels.purification import DEFAULT_MIXING_PROBABILITY, Plan, plan
from zerodelta.errors import GuaranteeError, ParameterError, require, require_extra
from zerodelta.exact.bits import SystemBits
from zerodelta.exact.integers import permutation
from zerodelta.exact.rational import Rational, as_count, float_within
from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.claims import RDP, ZCDP, ApproxDP, Claim, PureDP
from zerodelta.privacy.composition import compose, transcript_claim
from zerodelta.privacy.parameters import Neighbors, as_relation, as_usable_epsilon, sum_upper
from zerodelta.privacy.release import Release
from zerodelta.privacy.verify import verify
from zerodelta.spaces import EuclideanSpace, Finite, Space

Stated: TypeAlias = Callable[[Fraction], Claim | None]
"""What a measurement satisfies, as far as it matters at one ε; None if nothing is known there."""

_FLOOR = 2.0**-53
"""The smallest δ that OpenDP's thresholds state for one key, whatever the threshold."""


def purified(
    measurement: Any,
    *,
    space: Space,
    epsilon: Rational,
    d_in: Any,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    neighbors: Neighbors | None = None,
) -> Any:
    """Return a measurement of OpenDP as a pure one, whose value is an element of a space.

    Use it for an analysis with a δ whose result is small: one of N, or a few coordinates; at best
    for an adaptive composition whose answers nobody else sees. OpenDP's own conversions cannot
    remove δ.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Under zero-concentrated, Rényi, approximate or smoothed max divergence.
    space : Finite, Subsets, Multiset, Box or Ball
        What may be published; public. Whatever the measurement returns is mapped into it.
    epsilon : int, float, Fraction or str
        The pure ε at `d_in`.
    d_in : int or float
        The distance of the inputs to plan for, in the metric of the measurement.
    mixing_probability : number, default 1/100
        The largest probability of publishing a random element instead.
    neighbors : Neighbors, optional
        What `d_in` means, for the certificate. By default added or removed rows for symmetric and
        insert-delete distance 1, replaced rows for change-one and Hamming distance 1; for other
        metrics and distances there is no certificate unless it is stated.

    Returns
    -------
    opendp.mod.Measurement
        Under max divergence, for a `Context` and for compositions. Its map is at most `epsilon` at
        `d_in`, and raises where that of the measurement does. It has two more attributes: `plan`,
        and `certificate` (`asserted`); without a relation that is None, and the plan's `base`, too.
        Numbers and texts keep their type, vectors are lists of floats, one coordinate is a float,
        all else is an object.

    Notes
    -----
    **Guarantee**: B1, B2 or R(v), whichever the plan chose, if the measurement's map is right and
    its noise has the law that OpenDP proves. Nothing is raised because of a value: what raises in
    the measurement is an element of the space. Needs the features "contrib" and
    "honest-but-curious".

    Examples
    --------
    >>> import opendp.prelude as dp, zerodelta as zd  # doctest: +SKIP
    >>> dp.enable_features("contrib", "honest-but-curious")  # doctest: +SKIP
    >>> noisy = dp.m.make_gaussian(
    ...     dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=12.0
    ... )  # doctest: +SKIP
    >>> pure = purified(noisy, space=zd.Finite(1001), epsilon=1, d_in=1)  # doctest: +SKIP
    >>> pure.output_measure, pure.map(1) <= 1  # doctest: +SKIP
    (MaxDivergence, True)

    """
    require_extra("opendp", "opendp")
    import opendp.prelude as dp

    sort, fits = type(measurement).__name__, hasattr(measurement, "output_measure")
    require(fits, "measurement", sort, "a measurement of OpenDP", "pass what dp.m.make_… returns")
    wanted = as_usable_epsilon(epsilon)
    # a map returns floats: the largest that is not above ε
    reached = float_within(wanted, Fraction(0), wanted)
    relation = _relation(measurement.input_metric, d_in, neighbors)
    read = _reader(measurement, relation or Neighbors.REPLACE)
    base = read(d_in)(Fraction(reached))
    require(base is not None, "measurement", expected=_ABOVE_ZERO, remedy=_REMEDY)
    made = _plan(space, Fraction(reached), mixing_probability, base)
    output, published = _carrier(space)

    def function(value: Any) -> Any:
        try:
            drawn = measurement(value)
        except Exception:  # an exception would be an output that no claim covers
            drawn = None
        kept = made.purifier.apply(space.project(drawn), SystemBits())
        return published(space.project(kept))

    def privacy_map(distance: Any) -> float:
        stated = read(distance)

        def proven(t: Fraction) -> bool:
            known = stated(t)
            return known is not None and made.purifier.proves(t, known)

        found = smallest_epsilon(proven)
        # what is planned for holds for closer inputs, too, even where their own δ is 0.0
        nearer = isinstance(distance, (int, float)) and distance <= d_in
        return min(found, reached) if nearer or proven(Fraction(reached)) else found

    pure = dp.m.make_user_measurement(
        measurement.input_domain,
        measurement.input_metric,
        dp.max_divergence(),
        function,
        privacy_map,
        TO=output,
    )
    # a claim whose relation nobody has stated is not to be planned with
    pure.plan = made if relation is not None else replace(made, base=None)
    pure.certificate = None if relation is None or base is None else made.certificate(base)
    return pure


_ABOVE_ZERO = "a δ above 0: one of 0.0 may have underflowed, and would read as pure"
_REMEDY = "pass the measurement under zero-concentrated divergence, whose ρ does not underflow"


def _plan(space: Space, epsilon: Fraction, mixing: Rational, base: Claim | None) -> Plan:
    try:
        return plan(space, epsilon=epsilon, mixing_probability=mixing, base=base)
    except GuaranteeError as error:
        if base is not None and _is_stuck(base):
            raise GuaranteeError(
                f"{error} OpenDP states no δ below 2^-53 = e^-36.7 for a threshold, whatever the "
                "threshold is: more noise does not help. Use zd.heavy_hitters, which needs no δ."
            ) from None
        raise


def _is_stuck(base: Claim) -> bool:
    """Tell whether a δ is that of thresholds for a few keys: k·2^-53."""
    keys = math.exp(transcript_claim([(base, 1)]).log_failure) / _FLOOR
    return 1 <= round(keys) <= 1000 and math.isclose(keys, round(keys))


def _reader(measurement: Any, relation: Neighbors) -> Callable[[Any], Stated]:
    """Return how to read the map of a measurement, by its measure; compared, not named."""
    import opendp.prelude as dp

    measure = measurement.output_measure

    def constant(of: Callable[[Any], Claim]) -> Callable[[Any], Stated]:
        def read(distance: Any) -> Stated:
            found = of(measurement.map(distance))
            return lambda _: found

        return read

    def profile(distance: Any) -> Stated:
        known = measurement.map(distance)

        def at(t: Fraction) -> Claim | None:
            delta = known.delta(float(t))
            return ApproxDP(t, delta=delta, neighbors=relation) if delta > 0 else None

        return at

    def approximate(stated: Any) -> ApproxDP:
        epsilon, delta = stated
        require(delta != 0, "measurement", expected=_ABOVE_ZERO, remedy=_REMEDY)
        return ApproxDP(epsilon, delta=delta, neighbors=relation)

    def approximately_concentrated(stated: Any) -> Claim:
        rho, delta = stated
        return compose(ZCDP(rho, neighbors=relation), approximate((0, delta)))

    def renyi(curve: Any) -> RDP:
        return RDP(lambda order: curve(order), neighbors=relation)

    if measure == dp.zero_concentrated_divergence():
        return constant(lambda rho: ZCDP(rho, neighbors=relation))
    if measure == dp.approximate(dp.max_divergence()):
        return constant(approximate)
    if measure == dp.approximate(dp.zero_concentrated_divergence()):
        return constant(approximately_concentrated)
    if measure == dp.renyi_divergence():
        return constant(renyi)
    if measure == dp.smoothed_max_divergence():
        return profile
    pure = measure == dp.max_divergence()
    raise ParameterError(
        "measurement",
        str(measure),
        expected="a measurement with a δ: zero-concentrated, Rényi, approximate or smoothed max "
        f"divergence ({'it is pure already' if pure else 'this one is unknown here'})",
        remedy="use it as it is" if pure else "state its guarantee yourself and use zd.purify",
    )


def _relation(metric: Any, d_in: Any, neighbors: Neighbors | None) -> Neighbors | None:
    """Return which relation a distance covers, and refuse to name one that it does not."""
    import opendp.prelude as dp

    stated = None if neighbors is None else as_relation(neighbors)
    least: dict[Neighbors, float]
    if metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        least = {Neighbors.ADD_REMOVE: 1, Neighbors.REPLACE: 2}
    elif metric in (dp.change_one_distance(), dp.hamming_distance()):
        least = {Neighbors.REPLACE: 1, Neighbors.ADD_REMOVE: math.inf}
    else:
        return stated
    if stated is None:
        return next(iter(least)) if d_in == 1 else None
    require(
        d_in >= least[stated],
        "neighbors",
        stated,
        f"a relation whose neighbors are within d_in = {d_in} in {metric}",
        "leave neighbors out, or plan for the distance of a replaced row",
    )
    return stated


def _carrier(space: Space) -> tuple[str, Callable[[Any], Any]]:
    """Return the type that elements have in OpenDP, and how they are written in it."""
    if isinstance(space, EuclideanSpace):
        if space.dimension == 1:
            return "f64", lambda vector: float(vector[0])
        return "Vec<f64>", lambda vector: [float(each) for each in vector]
    if isinstance(space, Finite):
        if space.options is None and space.size < 2**62:
            return "i64", int
        kinds = {type(option) for option in space.options or ()}
        if kinds == {str} and all(_fits(option) for option in space.options or ()):
            return "String", str
        if kinds == {float}:
            return "f64", float
    return "ExtrinsicObject", lambda element: element


def _fits(text: Any) -> bool:
    """Tell whether C can hold a text: no NUL, no surrogates; else it would raise where drawn."""
    return not any(each == "\0" or "\ud800" <= each <= "\udfff" for each in text)


def measurement(
    task: Callable[[Any], Release],
    *,
    example: Any,
    input_domain: Any,
    input_metric: Any,
    output: str = "ExtrinsicObject",
) -> Any:
    """Return a task of this library as a measurement of OpenDP, under max divergence.

    Use it to spend part of a `Context` on a task that OpenDP does not have.

    Parameters
    ----------
    task : callable
        Of rows it makes a `Release`, such as ``lambda rows: zd.median(rows, bounds=(0, 100),
        epsilon="1/2")``; it calls the task and does nothing else.
    example : object
        Made-up rows of the public shape, never real ones: the task is run on them once, for the
        certificate.
    input_domain, input_metric : opendp.mod.Domain, opendp.mod.Metric
        Of the rows. A task for replaced rows needs change-one or Hamming distance, because the
        number of rows is public; one for added or removed rows takes any distance of data sets.
        Symmetric and change-one distance do not see the order of rows: a list of them is handed to
        the task in random order; for anything else the task must not depend on it.
    output : str
        The type of the value in OpenDP, such as "f64"; by default any object.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the certificate's ε times the distance (twice that where a task for added or
        removed rows is used for changed ones). Its attribute `certificate` is that of the example.

    Notes
    -----
    **Guarantee**: that of the certificate, which every run must repeat. Needs the features
    "contrib" and "honest-but-curious".

    Examples
    --------
    >>> import opendp.prelude as dp, zerodelta as zd  # doctest: +SKIP
    >>> dp.enable_features("contrib", "honest-but-curious")  # doctest: +SKIP
    >>> median = measurement(
    ...     lambda rows: zd.median(rows, bounds=(0, 100), epsilon="1/2"),
    ...     example=[50.0] * 1000,
    ...     input_domain=dp.vector_domain(dp.atom_domain(T=float, nan=False), size=1000),
    ...     input_metric=dp.change_one_distance(),
    ...     output="f64",
    ... )  # doctest: +SKIP
    >>> median.map(1), median.map(3)  # doctest: +SKIP
    (0.5, 1.5)

    """
    require_extra("opendp", "opendp")
    import opendp.prelude as dp

    first = task(example)
    require(
        isinstance(first, Release),
        "task",
        expected="a function that returns a release",
        remedy="pass lambda rows: zd.median(rows, …), or one that returns estimator.release_",
    )
    certificate = first.certificate
    proven = _proven(certificate)
    price = proven.exact_epsilon * _changes(input_metric, proven.neighbors)
    shuffled = input_metric in (dp.symmetric_distance(), dp.change_one_distance())

    def function(rows: Any) -> Any:
        try:
            if shuffled and isinstance(rows, list):
                rows = [rows[place] for place in permutation(len(rows), bits=SystemBits())]
            release = task(rows)
            same = _proven(release.certificate) == proven
            value = release.value
        except Exception:  # its text may say more than the fixed one below
            same = False
        if not same:
            raise GuaranteeError(_OTHER_SHAPE) from None
        return value

    def privacy_map(distance: Any) -> float:
        return sum_upper(price * as_count(distance, "d_in"))

    made = dp.m.make_user_measurement(
        input_domain, input_metric, dp.max_divergence(), function, privacy_map, TO=output
    )
    made.certificate = certificate
    return made


_OTHER_SHAPE = "the task refuses rows of this shape, or its certificate is not that of the example."


def _proven(certificate: Certificate) -> PureDP:
    """Return the pure claim that a certificate proves of one row."""
    proven = verify(certificate)
    if type(proven) is not PureDP:
        raise ParameterError(
            "task",
            expected="a pure release",
            remedy="pass a task that returns one, or purify it",
        )
    return proven


def _changes(metric: Any, relation: Neighbors) -> int:
    """Return how many neighbors a distance of one is, or refuse a metric in which it is none."""
    import opendp.prelude as dp

    adding = (dp.symmetric_distance(), dp.insert_delete_distance())
    require(
        metric in (*adding, dp.change_one_distance(), dp.hamming_distance()),
        "input_metric",
        str(metric),
        "symmetric, insert-delete, change-one or Hamming distance",
        "pass the metric of the rows",
    )
    require(
        relation is Neighbors.ADD_REMOVE or metric not in adding,
        "input_metric",
        str(metric),
        "change-one or Hamming distance: the task's number of rows is public",
        "pass dp.change_one_distance(), or open the rows for added or removed ones",
    )
    return 1 if relation is Neighbors.REPLACE or metric in adding else 2
