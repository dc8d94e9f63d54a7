"""Minimize by noisy full-batch gradient descent inside a study, one pure point out (C1, A6).

Built-in losses and networks are proven to treat rows one by one; of a function or a torch module
that is caller-asserted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from zerodelta.channels.search import Target, best_candidate, channels_for
from zerodelta.data.isolation import Watch
from zerodelta.data.pieces import with_progress
from zerodelta.data.row_queries import trial_rows
from zerodelta.data.rowwise import Block, Column
from zerodelta.data.source import Protection
from zerodelta.errors import ParameterError, require
from zerodelta.exact.logs import ball as arb_ball
from zerodelta.exact.logs import upper
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.certificate import PROGRAM
from zerodelta.privacy.release import Release
from zerodelta.spaces import Ball, Space
from zerodelta.training.descent import Descent, StepSizes, plan_descent
from zerodelta.training.gradient_sums import Examples, Gradients
from zerodelta.training.gradients import (
    CallableGradients,
    GradientFunction,
    Layers,
    LinearGradients,
)
from zerodelta.training.losses import Loss
from zerodelta.training.models import TanhNetwork, TorchModel
from zerodelta.value import value

if TYPE_CHECKING:
    from zerodelta.study.study import Study

Objective: TypeAlias = Loss | TanhNetwork | TorchModel | GradientFunction

_NOISE_SHARE = 0.45
"""The default `step` keeps the predicted internal noise below this part of the radius (l2). Chosen
by hand."""


@value
class DescentOptions:
    """The public options of a descent."""

    label: Column | None = -1
    data_norm: Rational | None = None
    clip: Rational | None = None
    layers: Layers | None = None
    step: Rational | None = None
    steps: int | None = None
    momentum: Rational = 0
    average: Rational = Fraction(1, 5)
    unit_weight: int | None = None


def minimize(
    study: Study,
    objective: Objective,
    *,
    label: Column | None = -1,
    data_norm: Rational | None = None,
    clip: Rational | None = None,
    layers: Layers | None = None,
    step: Rational | None = None,
    steps: int | None = None,
    momentum: Rational = 0,
    average: Rational = Fraction(1, 5),
    unit_weight: int | None = None,
) -> Release:
    """Minimize the mean loss of the rows over the study's ball, and publish the parameters.

    Use it to train a small model; `plan_minimize` shows the plan first, and the two plan once.

    Parameters
    ----------
    study : Study
        A study of its own, which publishes an l2 ball around the public start.
    objective : Loss, TanhNetwork, TorchModel or callable
        A built-in loss of a linear predictor (`zerodelta.models`), a network (`zerodelta.models`),
        or a function gradient(theta, rows) of all columns, the label last.
    label : column, default -1
        The label's column; None if there is none.
    data_norm : rational, optional
        A public bound on the features' l2 norm, to which rows are clipped; a loss needs it.
    clip : rational, optional
        The norm to which gradients are clipped: 1 by default, for a loss only if given.
    layers : list of (size, clip), optional
        Consecutive parts of the parameters, each clipped to its own norm.
    step : rational, optional
        The length of the first step, the others shrink linearly; by default from public numbers.
    steps : int, optional
        The number of steps; by default the study's `rounds`.
    momentum, average : rational
        The momentum, and the part of the last iterates that is averaged.
    unit_weight : int, optional
        For a data set with a unit, the largest weight of a unit, in rows: the sum of its rows'
        gradients is clipped to this many times the norm of one, and the noise is for that. By
        default about the average number of rows of a unit, if `units` and `expected_rows` were
        declared; else `max_rows`, and nothing is clipped.

    Returns
    -------
    Release
        One point of the ball, and nothing else of the run; then the study is closed.

    **Neighbors**: replace-one (the number of rows is public), or what the data set says.
    **Guarantee**: pure ε-DP: T Gaussian steps on integer sums (R, R2), published by R(v), B2 or S2
    at no extra ε. `proven` for built-in losses and `TanhNetwork`, else `asserted`: that the
    gradient treats rows one by one, keeps no state and shows nothing. It is tried on public rows.
    **Public**: everything but the rows; choose no argument by looking at them.
    **Error**: the predicted l2 error of the point: internal noise, rounding and mixing.

    >>> from zerodelta.spaces import Ball
    >>> from zerodelta.training.losses import Logistic
    >>> from zerodelta.study.study import Study
    >>> x = np.linspace(-1, 1, 20_000)
    >>> rows = np.column_stack([x, x > 0])
    >>> study = Study(rows, epsilon=1, publish=Ball(1, 10), rounds=50, mixing_probability=1e-6)
    >>> release = study.minimize(Logistic(), data_norm=1)
    >>> bool(release.value[0] > 1), release.certificate.status.value
    (True, 'proven')

    """
    options = DescentOptions(
        label=label,
        data_norm=data_norm,
        clip=clip,
        layers=layers,
        step=step,
        steps=steps,
        momentum=momentum,
        average=average,
        unit_weight=unit_weight,
    )
    descent, gradients = _planned(study, objective, options)
    assumed = PROGRAM if study._blocks else ()  # inside a program, its premises are assumed
    plan = descent.release_plan(assumed=assumed, rounds=_bar)
    opened = study._opened.replanned(plan)  # all refusals are raised here, before a row is read
    study._lifecycle.check()
    opened.pay()
    with study._lifecycle.busy():
        require(
            study._shares.take(1) is not None,
            "minimize",
            "a study that has asked queries",
            expected="a study of its own: a descent spends the whole plan",
            remedy="make a new Study, or ask gradients yourself with study.gradient",
        )
        try:
            with Watch():
                opened.diagnostics()  # before code of the caller's sees a row
                value = plan.answer(gradients.on(study._source), study._bits)
        except KeyboardInterrupt:  # a signal: no other error gets out of a descent
            study._end()
            raise
        study._lifecycle.close()
        return study._keep(opened.release(value))


def plan_minimize(study: Study, objective: Objective, **options: Any) -> Descent:
    """Return the descent that `minimize` would run: print it before you spend the study on it.

    No row is read, and `minimize` with the same arguments runs this very plan.

    Parameters
    ----------
    study : Study
        A study that publishes an l2 ball around the public start.
    objective : Loss, TanhNetwork, TorchModel or callable
        As in `minimize`.
    **options
        The other arguments of `minimize`. The default `step`: for a smooth
        built-in loss 1/(curvature · data_norm²), the classical radius/√T otherwise (a `TanhNetwork`
        names its own path); in any case so short that the internal noise is predicted to stay below
        45 % of the radius.

    Returns
    -------
    Descent
        Steps, noise, channel and predicted error, all from public numbers.

    """
    return _planned(study, objective, DescentOptions(**options))[0]


def _planned(
    study: Study, objective: Objective, options: DescentOptions
) -> tuple[Descent, Gradients]:
    """Return the descent and its gradients, planned once for rehearsal, plan and run."""
    study._lifecycle.check()
    comparable = isinstance(objective, (Loss, TanhNetwork))
    key = (objective if comparable else id(objective), repr(options))
    if key not in study._descents:
        # the objective is kept too, so that no other object can get the same id
        study._descents[key] = (*_new_plan(study, objective, options), objective)
    descent, gradients, _ = study._descents[key]
    return descent, gradients


def _new_plan(
    study: Study, objective: Objective, options: DescentOptions
) -> tuple[Descent, Gradients]:
    """Plan a descent on the study's ball, whose step is the best for the noise, or stated."""
    study_plan, mixing_probability = study._plan, study._mixing_probability
    space = _as_ball(study_plan.publishing.space)
    steps = study_plan.rounds if options.steps is None else options.steps
    count = as_count(steps, "steps", minimum=1)
    gradients = _gradients(study, objective, space, options)
    weight = _weight(study, options.unit_weight)
    if weight < study_plan.max_rows:
        gradients = gradients.weighing(weight)

    def sizes(first: Rational) -> StepSizes:
        return StepSizes(
            count=count, first=first, momentum=options.momentum, average=options.average
        )

    if options.step is None:
        noiseless = _noiseless_step(objective, gradients, space, count)
        # a replaced row changes the mean gradient by up to 2·lipschitz/n, an added one by half
        changes = 1 if study_plan.added else 2
        change = changes * float(gradients.lipschitz) / gradients.rows * weight
        unit = change * sizes(1).spread()
        quiet = _quiet_step(unit, space, study_plan.epsilon, mixing_probability)
        first = min(noiseless, quiet)
    else:
        first = float(as_positive(options.step, "step"))
    protection = Protection(
        unit=study_plan.unit, max_rows=study_plan.max_rows, neighbors=study_plan.neighbors
    )
    descent = plan_descent(
        gradients,
        ball=space,
        epsilon=study_plan.epsilon,
        mixing_probability=mixing_probability,
        sizes=sizes(first),
        protection=protection,
        rows_bound=study._rows_bound,
    )
    return replace(descent, rows_public=study_plan.rows_public), gradients


def _weight(study: Study, unit_weight: int | None) -> int:
    """Return the largest weight of a unit, in rows: stated, or a default from public numbers.

    The noise is proportional to it. A unit with fewer rows is unaffected; one with more rows, if
    these agree, counts like `weight` rows. So the typical number of rows of a unit is a good
    choice, where that is public.
    """
    maximum = study._plan.max_rows
    if unit_weight is None:
        return study._rows_of_a_unit
    weight = as_count(unit_weight, "unit_weight", minimum=1)
    require(
        weight <= maximum and (weight == maximum or study._by_unit),
        "unit_weight",
        weight,
        expected=f"at most max_rows = {maximum}, of a data set with a unit that is read here",
        remedy="leave it out",
    )
    return weight


def _gradients(
    study: Study, objective: Objective, space: Ball, options: DescentOptions
) -> Gradients:
    """Return the gradients of an objective, refusing options that do not apply to it."""
    examples = Examples.of(study._source, label=options.label)
    layers, clip = options.layers, options.clip
    if isinstance(objective, Loss):
        require(
            layers is None,
            "layers",
            layers,
            expected="None for a built-in loss",
            remedy="pass clip=",
        )
        gradients: Gradients = LinearGradients(
            examples,
            loss=objective,
            radius=_farthest(space),
            data_norm=options.data_norm,
            clip=clip,
        )
    else:
        require(
            # type, not isinstance: a subclass of a network may run any code
            study._plan.functions or type(objective) is TanhNetwork,
            "objective",
            type(objective),
            expected="a built-in loss or network, in a study with functions=False",
            remedy="make it with zd.Study(..., functions=True): its certificate then rests on "
            "what the function does",
        )
        require(
            layers is None or clip is None,
            "clip",
            clip,
            expected="None together with layers",
            remedy="pass the clipping norms in layers only",
        )
        function, size = _function(objective, space)
        gradients = CallableGradients(
            examples,
            gradient=function,
            radius=space.radius,
            clip=1 if clip is None else clip,
            layers=layers,
            dimension=size,
            start=space.middle(),
            rowwise=study._plan.rowwise,
            probe=_trial_rows(study, options.label),
        )
        if isinstance(objective, TanhNetwork):
            objective.check_inputs(examples.width)
    require(
        gradients.dimension == space.dimension,
        "publish",
        f"dimension {space.dimension}",
        expected=f"the {gradients.dimension} parameters of the objective",
        remedy=f"publish zd.Ball({gradients.dimension}, radius, center=public start)",
    )
    return gradients


def _function(
    objective: TanhNetwork | TorchModel | GradientFunction, space: Ball
) -> tuple[GradientFunction, int]:
    """Return the gradient function and the number of parameters."""
    if isinstance(objective, (TanhNetwork, TorchModel)):
        return objective.gradient, objective.parameters
    return objective, space.dimension


def _trial_rows(study: Study, label: Column | None) -> Block:
    """Return the public rows on which a gradient is tried, the label last."""
    rows = trial_rows(study._probe, study._columns)
    return np.concatenate(list(Examples.of(rows, label=label).blocks()))


def _as_ball(space: Space) -> Ball:
    """Return the l2 ball that a study publishes on, refusing other spaces."""
    if isinstance(space, Ball) and space.norm == 2:
        return space
    raise ParameterError(
        "publish",
        space,
        expected="an l2 ball around the public start",
        remedy="make the study with publish=zd.Ball(dimension, radius, center=start)",
    )


def _farthest(space: Ball) -> Fraction:
    """Return a bound on ‖θ‖ for θ in the ball: ‖center‖ + radius, rounded up."""
    exact = space.center.exact()
    square = sum((c * c for c in exact), Fraction(0)) * (space.dimension // len(exact))
    return space.radius + (Fraction(upper(lambda: arb_ball(square).sqrt())) if square else 0)


def _noiseless_step(objective: Objective, gradients: Gradients, space: Ball, count: int) -> float:
    """Return the first step length that would be best if gradients had no noise.

    1/(curvature · norm²) for a smooth loss, the classical diameter/(lipschitz · √T) otherwise; the
    steps of a network add up to the path that it names.
    """
    if isinstance(objective, TanhNetwork):
        return objective.path / float(gradients.lipschitz) * 2 / (count + 1)
    if isinstance(gradients, LinearGradients):
        curvature = gradients.loss.curvature_bound()
        if curvature is not None:
            return float(1 / (curvature * gradients.norm**2))
    return 2 * float(space.radius) / (float(gradients.lipschitz) * math.sqrt(count))


def _quiet_step(unit: float, space: Ball, epsilon: Fraction, mixing_probability: Fraction) -> float:
    """Return the first step length whose predicted internal noise is `_NOISE_SHARE` of the radius.

    `unit` is the sensitivity of the published point for a first step of 1.
    """
    net = channels_for(space, mixing_probability)[0]
    allowed = _NOISE_SHARE * float(space.radius)
    first = allowed / unit
    # noise is not quite proportional to the step, as the best lattice depends on it: a fixed point
    for _ in range(12):
        target = Target(
            epsilon=epsilon,
            mixing_probability=mixing_probability,
            sensitivity=Fraction(unit * first),
        )
        candidate = best_candidate(net, target)
        if candidate is None:
            break
        noise = target.noise(candidate.log_ratio, float(candidate.weight), space.dimension)
        first *= allowed / noise
    return first


def _bar(numbers: Iterable[int]) -> Iterable[int]:
    """Show a progress bar of rounds, which are public."""
    planned = list(numbers)
    return with_progress(planned, "rounds", len(planned))
