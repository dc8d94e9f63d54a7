"""`minimize`: exact noisy full-batch gradient descent inside a study, one pure point out (C1, A6).

Built-in losses and networks are proven to treat rows one by one; of a function or a torch module
the caller asserts it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np

from zerodelta.channels.search import Target, best_candidate, channels_for
from zerodelta.data.row_queries import PublicRows
from zerodelta.data.rowwise import Block, Column
from zerodelta.data.source import Rows
from zerodelta.errors import ParameterError
from zerodelta.exact.arb import ball as arb_ball
from zerodelta.exact.arb import upper
from zerodelta.exact.bits import BitSource
from zerodelta.exact.rational import Rational, as_count, as_positive
from zerodelta.privacy.release import Release
from zerodelta.spaces import Ball, Space
from zerodelta.training.callable_gradients import CallableGradients, GradientFunction, Layers
from zerodelta.training.descent import Descent, plan_descent
from zerodelta.training.examples import Examples
from zerodelta.training.gradient_sums import Gradients
from zerodelta.training.linear_gradients import LinearGradients
from zerodelta.training.losses import Loss
from zerodelta.training.step_sizes import StepSizes
from zerodelta.training.tanh_network import TanhNetwork
from zerodelta.training.torch_gradients import TorchModel

if TYPE_CHECKING:
    from zerodelta.study.study import Study

__all__ = ["Objective", "Setting", "minimize", "plan_minimize"]

Objective: TypeAlias = Loss | TanhNetwork | TorchModel | GradientFunction

_NOISE_SHARE = 0.45
"""Without a `step`, the hidden noise is predicted to stay below this part of the radius (l2)."""


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """What a descent needs of a study; everything but the rows of the source is public."""

    source: Rows
    space: Space
    epsilon: Fraction
    mixing_probability: Fraction
    rounds: int
    functions: bool
    rowwise: bool
    probe: Block
    bits: BitSource
    assumed: tuple[str, ...]
    """What is assumed of the program in which the descent runs, if there is one."""


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
    progress: bool = False,
) -> Release:
    """Minimize the mean loss of the rows over the study's ball, and publish the parameters.

    `objective`: a built-in loss of a linear predictor (`Logistic`, `Multinomial`, `Squared`,
    `Huber`, `Hinge`; needs `data_norm`, a public bound on the features' norm, to which rows are
    clipped), a `TanhNetwork`, a `TorchModel`, or a function gradient(theta, rows) of all columns.
    `label` names the label's column (default: the last); a function sees it last.
    Gradients are clipped to `clip` (default 1; for a loss with `data_norm`, only if given), or
    each of `layers`, a list of (size, clip), to its own norm. `step` is the first step's length,
    the others shrink linearly; by default it follows from public numbers (`plan_minimize`).

    **Releases**: one point of the ball, and nothing else of the run; then the study is closed.
    **Neighbors**: replace-one (the number of rows is public).
    **Guarantee**: pure ε-DP: T Gaussian steps on integer sums (R, R2), published by R(v), B2 or S2
    at no extra ε. `proven` for built-in losses and `TanhNetwork`, else `asserted`: that the
    gradient treats rows one by one, keeps no state and shows nothing. It is tried on public rows.
    **Public**: everything but the rows; choose no argument by looking at them. `progress` shows
    rounds, never values.
    **Error**: the predicted l2 error of the point: hidden noise, rounding and mixing.

    >>> import numpy as np
    >>> from zerodelta.spaces import Ball
    >>> from zerodelta.training.losses import Logistic
    >>> from zerodelta.study.study import Study
    >>> x = np.linspace(-1, 1, 2000)
    >>> study = Study(np.column_stack([x, x > 0]), epsilon=1, publish=Ball(1, 5), rounds=20)
    >>> release = study.minimize(Logistic(), data_norm=1)
    >>> release.certificate.claim.exact_epsilon, release.certificate.status.value
    (Fraction(1, 1), 'proven')
    """
    setting = study._setting()
    descent, gradients = _planned(
        setting,
        objective,
        label=label,
        data_norm=data_norm,
        clip=clip,
        layers=layers,
        step=step,
        steps=steps,
        momentum=momentum,
        average=average,
    )
    descent = replace(descent, assumed=(*setting.assumed, *descent.assumed))
    certificate = descent.certificate(setting.bits)  # raises now, if ever: no row was read

    def run() -> Release:
        value = descent.run(gradients, setting.bits, _bar if progress else iter)
        return Release(value=value, certificate=certificate, error=descent.error)

    return study._descend(run)


def plan_minimize(
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
) -> Descent:
    """Return the descent that `minimize` would run with these arguments: print it.

    The default step: for a smooth built-in loss 1/(curvature · data_norm²), the classical
    radius/√T otherwise (a `TanhNetwork` names its own path); in any case so short that the hidden
    noise is predicted to stay below 45 % of the radius. No row is read.
    """
    descent, _ = _planned(
        study._setting(),
        objective,
        label=label,
        data_norm=data_norm,
        clip=clip,
        layers=layers,
        step=step,
        steps=steps,
        momentum=momentum,
        average=average,
    )
    return descent


def _planned(
    setting: Setting,
    objective: Objective,
    *,
    label: Column | None,
    data_norm: Rational | None,
    clip: Rational | None,
    layers: Layers | None,
    step: Rational | None,
    steps: int | None,
    momentum: Rational,
    average: Rational,
) -> tuple[Descent, Gradients]:
    """Return the descent and where its gradients come from."""
    space = _as_ball(setting.space)
    count = setting.rounds if steps is None else as_count(steps, "steps", minimum=1)
    gradients = _gradients(
        objective,
        setting,
        space,
        label=label,
        data_norm=data_norm,
        clip=clip,
        layers=layers,
    )

    def sizes(first: Rational) -> StepSizes:
        return StepSizes(count=count, first=first, momentum=momentum, average=average)

    if step is None:
        longest = _longest_step(objective, gradients, space, count)
        unit = 2 * float(gradients.lipschitz) / gradients.rows * sizes(1).spread()
        first = min(longest, _quiet_step(unit, space, setting.epsilon, setting.mixing_probability))
    else:
        first = float(as_positive(step, "step"))
    return (
        plan_descent(
            gradients,
            ball=space,
            epsilon=setting.epsilon,
            mixing_probability=setting.mixing_probability,
            sizes=sizes(first),
        ),
        gradients,
    )


def _gradients(
    objective: Objective,
    setting: Setting,
    space: Ball,
    *,
    label: Column | None,
    data_norm: Rational | None,
    clip: Rational | None,
    layers: Layers | None,
) -> Gradients:
    examples = Examples.of_source(setting.source, label=label)
    if isinstance(objective, Loss):
        if layers is not None:
            raise ParameterError(
                "layers", layers, expected="None for a built-in loss", remedy="pass clip="
            )
        gradients: Gradients = LinearGradients(
            examples, loss=objective, radius=_farthest(space), data_norm=data_norm, clip=clip
        )
    else:
        function, size = _function(objective, space)
        ours = type(objective) is TanhNetwork  # a subclass may do anything
        if not ours and not setting.functions:
            raise ParameterError(
                "objective",
                type(objective),
                expected="a built-in loss or network, in a study with functions=False",
                remedy="make it with zd.Study(..., functions=True): its certificate then rests on "
                "what the function does",
            )
        if layers is not None and clip is not None:
            raise ParameterError(
                "clip", clip, expected="None beside layers", remedy="clip in the layers only"
            )
        gradients = CallableGradients(
            examples,
            gradient=function,
            radius=space.radius,
            clip=1 if clip is None else clip,
            layers=layers,
            dimension=size,
            start=space.middle(),
            rowwise=setting.rowwise,
            probe=_trial_rows(setting, label),
        )
        if isinstance(objective, TanhNetwork):
            objective.check_inputs(examples.width)
    if gradients.dimension != space.dimension:
        raise ParameterError(
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


def _trial_rows(setting: Setting, label: Column | None) -> Block:
    """Return the public rows on which a gradient is tried, the label last."""
    rows = PublicRows(setting.probe, setting.source.columns)
    return np.concatenate(list(Examples.of_source(rows, label=label).blocks()))


def _as_ball(space: Space) -> Ball:
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


def _longest_step(objective: Objective, gradients: Gradients, space: Ball, count: int) -> float:
    """Return the first step that is worth taking if there were no noise."""
    if isinstance(objective, TanhNetwork):
        return objective.path / float(gradients.lipschitz) * 2 / (count + 1)
    if isinstance(gradients, LinearGradients):
        curvature = gradients.loss.curvature_bound()
        if curvature is not None:
            return float(1 / (curvature * gradients.norm**2))
    return 2 * float(space.radius) / (float(gradients.lipschitz) * math.sqrt(count))


def _quiet_step(unit: float, space: Ball, epsilon: Fraction, mixing_probability: Fraction) -> float:
    """Return the first step at which the hidden noise is predicted to be a share of the radius.

    `unit` is the sensitivity of the published point for a first step of 1.
    """
    net = channels_for(space, mixing_probability)[0]
    allowed = _NOISE_SHARE * float(space.radius)
    first = allowed / unit
    for _ in range(12):  # the noise per unit depends on the lattice, which depends on the noise
        target = Target(
            epsilon=epsilon,
            mixing_probability=mixing_probability,
            sensitivity=Fraction(unit * first),
        )
        found = best_candidate(net, target)
        if found is None:
            break
        noise = target.noise(found.log_ratio, float(found.weight), space.dimension)
        first *= allowed / noise
    return first


def _bar(numbers: Iterable[int]) -> Iterable[int]:
    """Show a progress bar of rounds, which are public."""
    from rich.progress import track

    return track(list(numbers), description="rounds")
