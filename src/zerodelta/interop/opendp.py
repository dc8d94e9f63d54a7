"""Remove δ from a measurement of OpenDP, and use zerodelta's tasks as measurements.

A measurement's privacy map is OpenDP's statement of its guarantee: ρ, (ε, δ), a profile or a Rényi
curve. It is evaluated at every distance, so that the map of the pure measurement is right too.
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
"""The claim of a measurement that applies at one ε; None if none is known there."""

_FLOOR = 2.0**-53
"""The smallest δ that OpenDP states for one key of a threshold, however large the threshold."""


def purified(
    measurement: Any,
    *,
    space: Space,
    epsilon: Rational,
    d_in: Any,
    mixing_probability: Rational = DEFAULT_MIXING_PROBABILITY,
    neighbors: Neighbors | None = None,
) -> Any:
    """Return a pure measurement from one of OpenDP with a δ; its value is an element of a space.

    Use it for an analysis with a δ and a small result: one of N, or a few coordinates. It works
    best for an adaptive composition whose answers stay internal. OpenDP's own conversions cannot
    remove δ.

    Parameters
    ----------
    measurement : opendp.mod.Measurement
        Under zero-concentrated, Rényi, approximate or smoothed max divergence.
    space : Space
        The public set of results, a space of `zerodelta.purification`; the output of the
        measurement is mapped into it.
    epsilon : int, float, Fraction or str
        The pure ε at `d_in`.
    d_in : int or float
        The distance of the inputs to plan for, in the metric of the measurement.
    mixing_probability : number, default 1/100
        The largest probability of publishing a random element instead.
    neighbors : Neighbors, optional
        The relation at distance `d_in`, for the certificate. By default added or removed rows for
        symmetric and insert-delete distance 1, replaced rows for change-one and Hamming distance 1;
        for other metrics and distances there is no certificate unless `neighbors` is passed.

    Returns
    -------
    opendp.mod.Measurement
        Under max divergence, for a `Context` and for compositions. Its map is at most `epsilon` at
        `d_in`, and raises where that of the measurement does. It has two more attributes: `plan`,
        and `certificate` (`asserted`), which is None without a relation, like the plan's `base`.
        Numbers and texts keep their type, vectors are lists of floats, one coordinate is a float;
        all other results are objects.

    Notes
    -----
    **Guarantee**: B1, B2 or R(v), as the plan states, if the measurement's map is right and
    its noise has the law that OpenDP proves. Nothing is raised because of a value: an exception in
    the measurement becomes an element of the space. Needs the features "contrib" and
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

    type_name, fits = type(measurement).__name__, hasattr(measurement, "output_measure")
    remedy = "pass the result of dp.m.make_…"
    require(fits, "measurement", type_name, "a measurement of OpenDP", remedy)
    exact_epsilon = as_usable_epsilon(epsilon)
    # privacy maps return floats: the largest float that is at most ε
    reached = float_within(exact_epsilon, Fraction(0), exact_epsilon)
    relation = _relation(measurement.input_metric, d_in, neighbors)
    claims_at = _reader(measurement, relation or Neighbors.REPLACE)
    base = claims_at(d_in)(Fraction(reached))
    require(base is not None, "measurement", expected=_ABOVE_ZERO, remedy=_REMEDY)
    planned = _plan(space, Fraction(reached), mixing_probability, base)
    output, as_output = _carrier(space)

    def function(value: Any) -> Any:
        """Call the OpenDP measurement and pass its output, or its failure, through the channel."""
        try:
            noisy = measurement(value)
        except Exception:  # an exception would be an output that no claim covers
            noisy = None
        pure_value = planned.purifier.apply(space.project(noisy), SystemBits())
        return as_output(space.project(pure_value))

    def privacy_map(distance: Any) -> float:
        """Return the smallest ε the channel proves for inputs at this distance."""
        claim_at = claims_at(distance)

        def proven(t: Fraction) -> bool:
            claim = claim_at(t)
            return claim is not None and planned.purifier.proves(t, claim)

        smallest = smallest_epsilon(proven)
        # the planned ε also holds for closer inputs, even if their own δ underflows to 0.0
        nearer = isinstance(distance, (int, float)) and distance <= d_in
        return min(smallest, reached) if nearer or proven(Fraction(reached)) else smallest

    pure = dp.m.make_user_measurement(
        measurement.input_domain,
        measurement.input_metric,
        dp.max_divergence(),
        function,
        privacy_map,
        TO=output,
    )
    # without a stated relation the claim must not serve as the base of another plan
    pure.plan = planned if relation is not None else replace(planned, base=None)
    pure.certificate = None if relation is None or base is None else planned.certificate(base)
    return pure


_ABOVE_ZERO = "a δ above 0, because a δ of 0.0 may have underflowed"
_REMEDY = "pass the measurement under zero-concentrated divergence, whose ρ does not underflow"


def _plan(space: Space, epsilon: Fraction, mixing: Rational, base: Claim | None) -> Plan:
    """Plan the channel; explain a refusal that no noise of OpenDP can avoid."""
    try:
        return plan(space, epsilon=epsilon, mixing_probability=mixing, base=base)
    except GuaranteeError as error:
        if base is not None and _is_stuck(base):
            raise GuaranteeError(
                f"{error} OpenDP states no δ below 2^-53 = e^-36.7 for a threshold, however large "
                "it is: more noise does not help. Use zd.heavy_hitters, which needs no δ."
            ) from None
        raise


def _is_stuck(base: Claim) -> bool:
    """Tell whether δ is k·2^-53 for a small k: OpenDP's limit for a threshold on k keys."""
    keys = math.exp(transcript_claim([(base, 1)]).log_failure) / _FLOOR
    return 1 <= round(keys) <= 1000 and math.isclose(keys, round(keys))


def _reader(measurement: Any, relation: Neighbors) -> Callable[[Any], Stated]:
    """Return a function from a distance to what an OpenDP measurement claims there."""
    import opendp.prelude as dp

    measure = measurement.output_measure

    def constant(to_claim: Callable[[Any], Claim]) -> Callable[[Any], Stated]:
        """Return a reader of claims that are the same at every ε, such as zCDP."""

        def read(distance: Any) -> Stated:
            claim = to_claim(measurement.map(distance))
            return lambda _: claim

        return read

    def profile(distance: Any) -> Stated:
        """Return a reader of claims from a measurement's privacy profile."""
        deltas = measurement.map(distance)

        def claim_at(t: Fraction) -> Claim | None:
            """Return the claim (t, δ(t)); None where OpenDP's δ underflows to 0."""
            delta = deltas.delta(float(t))
            return ApproxDP(t, delta=delta, neighbors=relation) if delta > 0 else None

        return claim_at

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
        remedy="use it directly" if pure else "state its guarantee yourself and use zd.purify",
    )


def _relation(metric: Any, d_in: Any, neighbors: Neighbors | None) -> Neighbors | None:
    """Return the relation that a distance covers; refuse a stated one that it does not cover."""
    import opendp.prelude as dp

    stated = None if neighbors is None else as_relation(neighbors)
    smallest_distance: dict[Neighbors, float]
    if metric in (dp.symmetric_distance(), dp.insert_delete_distance()):
        smallest_distance = {Neighbors.ADD_REMOVE: 1, Neighbors.REPLACE: 2}
    elif metric in (dp.change_one_distance(), dp.hamming_distance()):
        smallest_distance = {Neighbors.REPLACE: 1, Neighbors.ADD_REMOVE: math.inf}
    else:
        return stated
    if stated is None:
        return next(iter(smallest_distance)) if d_in == 1 else None
    require(
        d_in >= smallest_distance[stated],
        "neighbors",
        stated,
        f"a relation whose neighbors are within d_in = {d_in} in {metric}",
        "leave neighbors out, or plan for the distance of a replaced row",
    )
    return stated


def _carrier(space: Space) -> tuple[str, Callable[[Any], Any]]:
    """Return OpenDP's type for elements of a space, and the conversion to it."""
    if isinstance(space, EuclideanSpace):
        if space.dimension == 1:
            return "f64", lambda vector: float(vector[0])
        return "Vec<f64>", lambda vector: [float(coordinate) for coordinate in vector]
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
    """Tell whether C can hold a text (no NUL, no surrogates): drawing another one would raise."""
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)


def measurement(
    task: Callable[[Any], Release],
    *,
    example: Any,
    input_domain: Any,
    input_metric: Any,
    output: str = "ExtrinsicObject",
) -> Any:
    """Return a zerodelta task as a measurement of OpenDP, under max divergence.

    Use it to spend part of a `Context` on a task that OpenDP does not have.

    Parameters
    ----------
    task : callable
        A function that calls a task on rows and returns its `Release`, such as
        ``lambda rows: zd.median(rows, bounds=(0, 100), epsilon="1/2")``.
    example : object
        Made-up rows of the public shape, never real ones: the task is run on them once, for the
        certificate.
    input_domain, input_metric : opendp.mod.Domain, opendp.mod.Metric
        The domain and the metric of the rows. A task for replaced rows needs change-one or Hamming
        distance, because the number of rows is public; a task for added or removed rows takes any
        distance of data sets. Symmetric and change-one distance ignore the order of rows: a list of
        rows is passed to the task in random order; with other rows the task must not depend on it.
    output : str
        OpenDP's type of the value, such as "f64"; by default any object.

    Returns
    -------
    opendp.mod.Measurement
        Its map is the certificate's ε times the distance (twice that if a task for added or
        removed rows is used for changed ones). Its attribute `certificate` is that of the example.

    Notes
    -----
    **Guarantee**: that of the certificate; every run must have the same one. Needs the features
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
        remedy="pass lambda rows: zd.median(rows, …), or a function returning estimator.release_",
    )
    certificate = first.certificate
    proven = _proven(certificate)
    price = proven.exact_epsilon * _changes(input_metric, proven.neighbors)
    shuffled = input_metric in (dp.symmetric_distance(), dp.change_one_distance())

    def function(rows: Any) -> Any:
        """Release on shuffled rows; refuse if the certificate is not the one planned."""
        try:
            if shuffled and isinstance(rows, list):
                rows = [rows[i] for i in permutation(len(rows), bits=SystemBits())]
            release = task(rows)
            same = _proven(release.certificate) == proven
            value = release.value
        except Exception:  # its message may reveal more than the fixed one below
            same = False
        if not same:
            raise GuaranteeError(_OTHER_SHAPE) from None
        return value

    def privacy_map(distance: Any) -> float:
        return sum_upper(price * as_count(distance, "d_in"))

    measured = dp.m.make_user_measurement(
        input_domain, input_metric, dp.max_divergence(), function, privacy_map, TO=output
    )
    measured.certificate = certificate
    return measured


_OTHER_SHAPE = "the task refuses rows of this shape, or its certificate is not that of the example."


def _proven(certificate: Certificate) -> PureDP:
    """Return the pure claim that a certificate proves of one row."""
    proven = verify(certificate)
    if type(proven) is not PureDP:
        raise ParameterError(
            "task",
            expected="a function that returns a pure release",
            remedy="choose a pure method, or purify the release",
        )
    return proven


def _changes(metric: Any, relation: Neighbors) -> int:
    """Return the number of neighbor steps in a distance of one; refuse unsuitable metrics."""
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
