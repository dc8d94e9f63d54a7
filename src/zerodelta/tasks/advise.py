"""Advise which pure mechanism will be the most accurate, before there is any data (`advise`)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from zerodelta.errors import ParameterError, ZeroDeltaError, did_you_mean, require, require_extra
from zerodelta.exact.rational import Rational, as_count, as_positive, as_rational
from zerodelta.privacy.readable import large
from zerodelta.spine.plan import Method
from zerodelta.tasks.registry import TASKS
from zerodelta.tasks.task import Forecast
from zerodelta.value import value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# -- Advice: methods with their predicted errors, as a table and as a picture ---------------------

_WIDTH = 100
_USEFUL = 0.1
_MOST_ROWS = 10**12

_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""Colors that color-blind readers can distinguish (Okabe and Ito)."""

_STYLES = ("-", "--", "-.", ":")
_POINTS = 11
_SHOWN = {
    "n": ("number of rows n", 30.0),
    "questions": ("internal queries", 30.0),
    "epsilon": ("ε", 10.0),
}
"""For each axis of a picture its title, and the factor by which it extends to both sides."""


@value(repr=False)
class Advice:
    """The methods of a task, least predicted error first, computed from public numbers only.

    Print it for a table, iterate over its methods, take `best`, or `plot` the errors.
    """

    task: str
    numbers: Mapping[str, Any]
    """The numbers of the call: n, dimension, ε and the options of the task."""
    unit: str
    """The meaning of an error, and its unit."""
    reliable: str
    """The possible distance of a forecast from measured errors."""
    call: str
    """The call of the best method."""
    methods: tuple[Method, ...]
    forecast: Callable[[Mapping[str, Any]], tuple[Method, ...]]
    """The function from other numbers to the methods, for `plot` and `useful_from`."""
    blind: Callable[[Mapping[str, Any]], float] | None = None
    """The error of a guess that reads no rows; None where the number of rows does not matter."""
    complete: Method | None = None
    """The best method for missing=None; None unless missing cells are skipped."""
    few: str = ""
    """The sentence that explains why fewer rows than `useful_from` are of no use."""
    shows: Callable[[Mapping[str, Any]], str] | None = None
    """The function that returns a text with further errors, where a release has several."""
    aim: str | None = None
    """A sentence on the number that was solved for, if an error was passed."""

    @property
    def epsilon(self) -> Fraction:
        """The privacy parameter: as passed, or the smallest one that reaches the passed error."""
        return as_rational(self.numbers["epsilon"], "epsilon")

    @property
    def n(self) -> int | None:
        """The number of rows: as passed, or for the passed error; None where it is irrelevant."""
        return self.numbers.get("n")

    @property
    def best(self) -> Method:
        """The method with the least predicted error."""
        return self.methods[0]

    @property
    def reason(self) -> str:
        """The reason why the best method is the best, in one sentence."""
        best, rivals = self.best, [m for m in self.methods[1:] if math.isfinite(m.error)]
        if not rivals:
            return f"{best.name}: {best.why}"
        ratio = rivals[0].error / best.error if best.error > 0 else math.inf
        lead = "as good as" if ratio < 1.005 else f"{ratio:.3g} times less error than"
        return f"{best.name}, {lead} {rivals[0].name}: {best.why}"

    @property
    def useful_from(self) -> int | None:
        """The approximate number of rows at which the error is a tenth of that of a blind guess.

        With fewer rows an answer says little about them. None where n is irrelevant, or where no
        number of rows is enough.

        >>> from zerodelta.tasks.advise import advise
        >>> advise("mean", n=50, epsilon=1, bounds=(0, 100)).useful_from
        20
        """
        blind = self.blind
        if blind is None:
            return None
        return smallest_rows(lambda n: self._error_share(n, blind), start=self.numbers["n"])

    def _error_share(self, n: int, blind: Callable[[Mapping[str, Any]], float]) -> float:
        """Return the error at n rows, relative to a tenth of that of a blind guess."""
        numbers = {**self.numbers, "n": n}
        return self.forecast(numbers)[0].error / (_USEFUL * blind(numbers))

    def __iter__(self) -> Iterator[Method]:
        return iter(self.methods)

    def __len__(self) -> int:
        return len(self.methods)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the predicted errors against n and against ε; save the picture if a path is passed.

        The figure belongs to no window: a notebook shows it, `savefig` writes it.
        """
        require_extra("matplotlib", "plot")
        from matplotlib.figure import Figure  # slow to import

        shown = [name for name in _SHOWN if name in self.numbers]
        figure = Figure(figsize=(5.2 * len(shown), 4.4), layout="constrained")
        panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
        for panel, name in zip(panels, shown, strict=True):
            self._draw(panel, name)
        panels[0].set_ylabel("predicted error")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(5, len(labels)))
        figure.suptitle(f"{self.task}: {self.unit}", fontsize=10, wrap=True)
        if path is not None:
            figure.savefig(path, dpi=144)
        return figure

    def _draw(self, panel: Axes, name: str) -> None:
        """Plot the error of each method against one number: ε, or the number of rows."""
        center, (title, reach) = float(as_positive(self.numbers[name], name)), _SHOWN[name]
        steps = [center * reach ** (2 * k / (_POINTS - 1) - 1) for k in range(_POINTS)]
        values: list[float] = (
            [float(f"{step:.4g}") for step in steps]
            if name == "epsilon"
            else sorted({max(1, round(step)) for step in steps})
        )
        lines: dict[str, list[float]] = {method.name: [] for method in self.methods}
        for entry in values:
            try:
                errors = {m.name: m.error for m in self.forecast({**self.numbers, name: entry})}
            except ZeroDeltaError:  # no method applies to so few rows, or to such a small ε
                errors = {}
            for label, line in lines.items():
                error = errors.get(label, math.nan)
                line.append(error if 0 < error < math.inf else math.nan)
        for place, method in enumerate(self.methods):
            best = place == 0
            panel.plot(
                values,
                lines[method.name],
                label=f"{method.name} (best here)" if best else method.name,
                color=_COLORS[place % len(_COLORS)],
                linestyle=_STYLES[place % len(_STYLES)],
                linewidth=2.2 if best else 1.4,
                zorder=3 if best else 2,
            )
        panel.axvline(center, color="#999999", linewidth=0.8, zorder=1)
        panel.set(xscale="log", yscale="log", xlabel=title)
        panel.grid(True, which="major", color="#dddddd", linewidth=0.6)
        panel.spines[["top", "right"]].set_visible(False)

    def __str__(self) -> str:
        numbers = ", ".join(f"{_name(k)} = {_value(v)}" for k, v in self.numbers.items())
        warning = large(self.epsilon)
        lines = [
            f"{self.task}: {numbers} (pure, δ = 0)",
            *([] if self.aim is None else [self.aim]),
            f"error: {self.unit};",
            f"       {self.reliable}",
            "",
            *self._table(),
            "",
            f"best: {self.reason}",
            *([] if self.shows is None else self.shows(self.numbers).split("\n")),
            *self._complete(),
            *self._useful(),
            *([f"beware: {warning}"] if warning else []),
            f"call: {self.call}",
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _complete(self) -> list[str]:
        """Return a line with the forecast for missing=None, if missing cells are skipped."""
        if self.complete is None:
            return []
        error, name = f"{self.complete.error:.3g}", self.complete.name
        return [f"with missing=None, if no cell is missing: error {error} ({name})"]

    def _useful(self) -> list[str]:
        """Return a line with the smallest useful number of rows, if there is one."""
        smallest = self.useful_from
        if smallest is None:
            return []
        few = f": with fewer {self.few}" if self.numbers["n"] < smallest else ""
        return [f"useful from n ≈ {_value(smallest)}{few}"]

    def _table(self) -> list[str]:
        """Return the lines of the table of methods."""
        smallest = self.best.error
        rows = [("method", "error", "× best", "spends", "why")]
        for method in self.methods:
            times = method.error / smallest if 0 < smallest < math.inf else 1.0
            rows.append(
                (
                    method.name,
                    f"{method.error:.3g}" if math.isfinite(method.error) else "-",
                    f"{times:.3g}" if math.isfinite(times) else "-",
                    method.spends,
                    method.why,
                )
            )
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        lines = []
        for place, (name, error, ratio, spends, why) in enumerate(rows):
            head = f"{name:<{widths[0]}}  {error:>{widths[1]}}  {ratio:>{widths[2]}}  "
            mark = "→ " if place == 1 else "  "
            lines.append(f"{mark}{head}{spends}" if place else f"{mark}{head}spends / why")
            if place:
                lines.append(" " * (len(head) + 2) + why)
        return [*lines[:1], "  " + "-" * (max(len(line) for line in lines) - 2), *lines[1:]]


@value(repr=False)
class AllAdvice:
    """The advice for all tasks, each with typical numbers; print it for a table."""

    tasks: tuple[Advice, ...]

    def __iter__(self) -> Iterator[Advice]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def __getitem__(self, task: str) -> Advice:
        return {advice.task: advice for advice in self.tasks}[task]

    def __str__(self) -> str:
        lines = ["task             useful from n ≈   for"]
        for advice in self.tasks:
            smallest = advice.useful_from
            rows = "-" if smallest is None else _value(smallest)
            useful = "any" if advice.blind is None else rows
            numbers = [f"{_name(k)} = {_value(v)}" for k, v in advice.numbers.items() if k != "n"]
            lines.append(f"{advice.task:<15}  {useful:>15}   {', '.join(numbers)}")
        lines += [
            "",
            "useful: the error is a tenth of that of a guess without rows; any: n does not matter.",
            'One task with its methods: zd.advise("mean", n=10_000, epsilon=1, bounds=(0, 100));',
            "with error= instead of epsilon=, or of n=, it finds the ε or n for that accuracy.",
        ]
        return "\n".join(lines)

    __repr__ = __str__


def smallest_rows(share: Callable[[int], float], *, start: int) -> int | None:
    """Return the smallest n with share(n) <= 1, within about 10 % and to two digits, or None.

    The share falls with n. A bracket is searched in factors of 8, and then narrowed by linear
    interpolation of logarithms: forecasts may be slow, and about six are needed.

    >>> smallest_rows(lambda n: (3000 / n) ** 2, start=10), smallest_rows(lambda n: 2.0, start=10)
    (3000, None)
    """
    shares = {start: share(start)}
    low = high = start
    while shares[high] > 1:
        if high >= _MOST_ROWS:
            return None
        low, high = high, high * 8
        shares[high] = share(high)
    while low > 1 and shares[low] <= 1:
        low, high = max(1, low // 8), low
        shares[low] = share(low)
    while shares[low] > 1 and high > 1.1 * low + 1:
        above, below = math.log(shares[low]), math.log(max(shares[high], 1e-300))
        part = min(max(above / (above - below), 0.1), 0.9)
        middle = min(max(round(low * (high / low) ** part), low + 1), high - 1)
        shares[middle] = share(middle)
        low, high = (middle, high) if shares[middle] > 1 else (low, middle)
    smallest = low if shares[low] <= 1 else high
    digits = 2 - len(str(smallest))
    return round(smallest, digits) if digits < 0 else smallest


def _name(number: str) -> str:
    """Return the name of a number as it is printed."""
    return {"epsilon": "ε"}.get(number, number)


def _value(value: Any) -> str:
    """Return a number or an option as it is printed, cut to half a line."""
    if isinstance(value, Mapping):
        return f"{len(value)} columns"
    text = f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)
    return text if len(text) <= _WIDTH // 2 else text[: _WIDTH // 2] + "…"


# -- The smallest ε, or the fewest rows, whose forecast reaches a stated error --------------------
# Forecasts fall with ε and with n. They are evaluated at decimals of three digits, by bisection
# over all such decimals in the range. So the result is an exact number, its own forecast reaches
# the error, and that of the next smaller decimal does not.

START: dict[str, Any] = {"epsilon": 1, "n": 10_000}
"""Values for a first forecast, which shows mistakes in the other numbers."""

_RANGE = {"epsilon": (-6, 3), "n": (0, 12)}
"""The range of the search, in powers of ten."""

_PER_TEN = 900
"""The number of decimals of three digits from one power of ten to the next."""

_FLAT = 0.999
"""An error that falls by less than this factor over the range of n does not depend on n."""


def sought_for(arguments: Mapping[str, Any], *, has_rows: bool) -> str:
    """Return the name of the number to solve for: ε, or n if ε is passed."""
    needed = ["epsilon", *(["n"] if has_rows else [])]
    missing = [name for name in needed if name not in arguments]
    require(
        len(missing) == 1,
        "error",
        expected=f"together with error= exactly one of {' and '.join(needed)}"
        if has_rows
        else "no epsilon= together with error=, which determines it",
        remedy="leave out the number to solve for, and pass the other"
        if has_rows
        else "leave it out",
    )
    return missing[0]


def solved(error: Callable[[Any], float], sought: str, wanted: float, unit: str) -> Any:
    """Return the smallest value, to three digits, with error(value) <= wanted: a text, or an int.

    >>> solved(lambda epsilon: 2 / float(epsilon), "epsilon", 3.0, "rows")
    '0.667'
    >>> solved(lambda n: 5000 / n, "n", 3.0, "years")
    1670
    """
    error(START[sought])  # raises here for mistakes in the other numbers
    low, high = (_PER_TEN * power for power in _RANGE[sought])
    best = _error(error, _decimal(sought, high))
    if sought == "n" and not best < _FLAT * _error(error, START["n"]):
        raise ParameterError(
            "n",
            expected=f"a stated number of rows: this error ({unit}) does not depend on it",
            remedy="pass n=, and leave out epsilon to solve for it",
        )
    if not best <= wanted:
        raise ParameterError(
            "error",
            wanted,
            expected=f"at least {best:.3g}, forecast for {aimed(sought, _decimal(sought, high))} "
            f"(in its unit: {unit})",
            remedy=f"pass a larger error, or {_OTHERS[sought]}",
        )
    if _error(error, _decimal(sought, low)) <= wanted:
        if sought == "n":
            return _decimal(sought, low)
        raise ParameterError(
            "error",
            wanted,
            expected=f"less than the error at {aimed(sought, _decimal(sought, low))}: a larger one "
            f"needs no rows at all (in its unit: {unit})",
            remedy="pass a smaller error",
        )
    while high - low > 1:
        middle = (low + high) // 2
        if _error(error, _decimal(sought, middle)) <= wanted:
            high = middle
        else:
            low = middle
    return _decimal(sought, high)


_OTHERS = {"epsilon": "more rows with n=", "n": "a larger epsilon"}


def _error(error: Callable[[Any], float], value: Any) -> float:
    """Return a forecast, or infinity where no method applies to so few rows or so small an ε."""
    try:
        return error(value)
    except ZeroDeltaError:
        return math.inf


def _decimal(sought: str, place: int) -> Any:
    """Return the decimal at a place in the order of all three-digit decimals; n is rounded up.

    >>> [_decimal("epsilon", place) for place in (-900, -1, 0, 1)], _decimal("n", 901)
    (['0.1', '0.999', '1', '1.01'], 11)
    """
    power, digits = divmod(place, _PER_TEN)
    exact = Decimal(100 + digits).scaleb(power - 2)
    return math.ceil(exact) if sought == "n" else f"{exact.normalize():f}"


def aimed(sought: str, value: Any) -> str:
    """Return the solved number with its name, as text."""
    if sought == "epsilon":
        return f"ε = {value}"
    return f"n = {value:,} rows".replace(",", " ")


# -- The call -------------------------------------------------------------------------------------

_LONGEST = 60

_COMPLETE = ";\n       no script in bench/ measured it where cells are skipped"


@overload
def advise(task: None = None, *, epsilon: Rational | None = None) -> AllAdvice: ...


@overload
def advise(
    task: str,
    *,
    n: int | None = None,
    dimension: int | None = None,
    epsilon: Rational | None = None,
    error: Rational | None = None,
    **options: Any,
) -> Advice: ...


def advise(
    task: str | None = None,
    *,
    n: int | None = None,
    dimension: int | None = None,
    epsilon: Rational | None = None,
    error: Rational | None = None,
    **options: Any,
) -> Advice | AllAdvice:
    """Compare all methods of a task at this ε. Use it before there is data: it reads none.

    The forecasts are those of ``method="auto"`` and of a release's `error`: the same plan, without
    rows. With `error` it solves for the ε, or the number of rows, that an accuracy needs.

    Parameters
    ----------
    task : str, optional
        The name of a function, such as "mean", or "queries" (`answer_queries`), "linear",
        "logistic", "multinomial", "classifier" (all classifiers), or "study" (internal queries
        against pure composition). Without it all tasks are listed, each with the number of rows
        from which on it is useful.
    n : int, optional
        The number of rows.
    dimension : int, optional
        The number of columns, or of features.
    epsilon : int, float, Fraction or str
        The privacy parameter.
    error : number, optional
        The largest acceptable forecast error, in the printed unit: leave out `epsilon`, or `n`, and
        the smallest value that reaches it is returned, rounded up to three digits.
    **options
        Further arguments of the task, as for the function itself; an error lists missing ones.

    Returns
    -------
    Advice
        Print it for a table; it has `best`, `reason`, `epsilon`, `n`, `useful_from`, `plot()`.
        Without a task the result has the advice for each task, by name.

    **Guarantee**: none is needed, as no data is read. **Error**: it is printed with the forecasts
    how far they may be off.

    >>> advice = advise("mean", n=10_000, dimension=5, epsilon=1, data_norm=1)
    >>> advice.best.name, [method.name for method in advice]
    ('k-norm', ['k-norm', 'laplace', 'k-norm-max'])
    >>> print(advise("study", questions=1000, publish=16, epsilon=1).reason)
    study, 14.1 times less error than pure composition: a study pays from 6 questions on
    >>> ages = {"of": {"age": ["mean"]}, "by": 12, "bounds": (0, 120)}
    >>> float(advise("table", n=200_000, error="0.01", **ages).epsilon)
    0.0104
    >>> advise("table", epsilon=1, error="0.01", **ages).n
    2080

    """
    if task is None:
        return _all(epsilon, {"n": n, "dimension": dimension, "error": error, **options})
    known = _forecast_of(task)
    arguments = {"n": n, "dimension": dimension, "epsilon": epsilon, **options}
    arguments = {name: value for name, value in arguments.items() if value is not None}

    def forecast(numbers: Mapping[str, Any]) -> tuple[Method, ...]:
        return known.methods({**known.allows, **numbers})

    def blind(numbers: Mapping[str, Any]) -> float:
        if known.blind is None:
            return forecast({**numbers, "n": 1})[0].error
        return known.blind({**known.allows, **numbers})

    aim = None
    if error is None:
        numbers = _numbers(task, known, arguments)
    else:
        sought = sought_for(arguments, has_rows="n" in known.needs)
        numbers = _numbers(task, known, {**arguments, sought: START[sought]})
        wanted = float(as_positive(error, "error"))
        numbers[sought] = solved(
            lambda value: forecast({**numbers, sought: value})[0].error, sought, wanted, known.unit
        )
        aim = f"for an error of at most {error}: {aimed(sought, numbers[sought])}"
    methods = forecast(numbers)
    call = known.calls.get(methods[0].name, known.call)
    texts = {name: _shown(value) for name, value in {**known.allows, **numbers}.items()}
    shows = known.shows
    return Advice(
        task=task,
        numbers=numbers,
        unit=known.unit,
        reliable=known.reliable + (_COMPLETE if numbers.get("missing") else ""),
        call=call.format(**texts),
        methods=methods,
        forecast=forecast,
        blind=None if "n" not in known.needs else blind,
        complete=forecast({**numbers, "missing": None})[0] if numbers.get("missing") else None,
        few=known.few,
        shows=None if shows is None else lambda others: shows({**known.allows, **others}),
        aim=aim,
    )


def _forecast_of(task: Any) -> Forecast:
    """Return what the advisor knows of a task; refuse unknown names."""
    described = TASKS.get(task) if isinstance(task, str) else None
    if described is not None and described.forecast is not None:
        return described.forecast
    names = list(_forecasts())
    expected = f"one of {', '.join(sorted(names))}"
    remedy = did_you_mean(task, names, "pass its name")
    raise ParameterError("task", task, expected=expected, remedy=remedy)


def _forecasts() -> dict[str, Forecast]:
    """Return what the advisor knows, by task."""
    tasks = ((name, task.forecast) for name, task in TASKS.items())
    return {name: forecast for name, forecast in tasks if forecast is not None}


def _all(epsilon: Rational | None, others: Mapping[str, Any]) -> AllAdvice:
    """Return the advice for all tasks, each with typical numbers."""
    for name, entry in others.items():
        remedy = 'name a task, such as zd.advise("mean", …)'
        require(entry is None, name, entry, "only epsilon= without a task", remedy)
    exact = 1 if epsilon is None else epsilon
    return AllAdvice(
        tasks=tuple(
            advise(
                task,
                **known.typical,
                epsilon=exact,
                n=START["n"] if "n" in known.needs else None,
            )
            for task, known in _forecasts().items()
        )
    )


def _shown(value: Any) -> str:
    """Return a value as it is written in a call; a long list is shown as "…"."""
    word = isinstance(value, str) and value[:1].isalpha()
    text = f'"{value}"' if word else str(value)
    return text if len(text) <= _LONGEST else "…"


def _numbers(name: str, task: Forecast, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers of the task in a fixed order; refuse what is missing or unknown."""
    order = [part for need in task.needs for part in need.split("|")]
    known = list(dict.fromkeys([*order, *task.allows]))
    missing = [
        need for need in task.needs if not any(part in arguments for part in need.split("|"))
    ]
    unknown = [number for number in arguments if number not in known]
    if missing or unknown:
        may = ", ".join(number for number in task.allows if number not in order)
        needs, lacking = (", ".join(names).replace("|", " or ") for names in (task.needs, missing))
        example = f'such as advise("{name}", {", ".join(task.needs.values())})'
        raise ParameterError(
            lacking or unknown[0],
            None if missing else arguments[unknown[0]],
            expected=f'for "{name}": {needs}' + (f"; optional: {may}" if may else ""),
            remedy=did_you_mean(unknown[0] if unknown else None, sorted(known), example),
        )
    for count in ("n", "dimension"):
        if count in arguments:
            arguments[count] = as_count(arguments[count], count, minimum=1)
            largest = {"n": 1 << 53, "dimension": 1 << 20}[count]
            require(
                arguments[count] <= largest,
                count,
                arguments[count],
                f"at most {largest}",
                "pass less",
            )
    as_positive(arguments["epsilon"], "epsilon")
    return {number: arguments[number] for number in known if number in arguments}
