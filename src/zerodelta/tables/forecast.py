"""Expected errors of tables by public numbers: exact for noise, a rule for fits, a guess for data.

Noise has known variances. A fit cuts off what no distribution can follow. What is not measured is
as large as the interactions of columns usually are: a guess that only chooses among methods.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from zerodelta.exact.arrays import Floats
from zerodelta.tables.domain import Columns, Domain, TableWorkload
from zerodelta.tables.orbits import Orbit, orbits

MOST_FITTED = 1 << 20
"""With more cells answers are not fitted to a distribution, unless rows are wanted."""
_USUAL = (0.4, 0.15, 0.05)
"""The usual size of what one, two, three columns add to what fewer of them show, from -1 to 1.

Root mean squares of a dozen made and real data sets; each further column halves it."""
_CHOSEN = 0.5
"""Of what is not measured, so much is left in squares if the worst fitted tables are measured."""
_TYPICAL = 0.25


def tables_error(
    domain: Domain, workload: TableWorkload, variances: Mapping[Columns, Floats]
) -> float:
    """Return the expected absolute error of a cell, averaged, for coefficients of these variances.

    Variances are those of one set of columns of each orbit; orbits without one are not measured.
    """
    noise = usual = dimension = 0.0
    for orbit in orbits(domain, workload):
        weight = orbit.count * orbit.importance
        if orbit.example in variances:
            noise += weight * float(variances[orbit.example].sum())
            dimension += orbit.coefficients
        else:
            usual += weight * _usual_square(orbit)
    return _fitted(domain, workload, noise, usual, dimension)


def rounds_error(
    domain: Domain, workload: TableWorkload, epsilon: Fraction, rows: int, rounds: int
) -> float:
    """Return the same for `rounds` rounds of choosing and measuring a table."""
    variance = 2 * (4 * rounds / float(epsilon) / rows) ** 2
    share = rounds / len(workload.tables)
    noise = usual = dimension = 0.0
    for orbit in orbits(domain, workload):
        reads = share * orbit.around  # how many of the chosen tables show it
        known, weight = min(1.0, reads), orbit.count * orbit.importance
        each = variance * orbit.table_cells / orbit.cells / max(1.0, reads)
        noise += weight * known * orbit.size * each
        usual += weight * (1 - known) * _CHOSEN * _usual_square(orbit)
        dimension += known * orbit.coefficients
    return _fitted(domain, workload, noise, usual, dimension)


def best_rounds(domain: Domain, workload: TableWorkload, epsilon: Fraction, rows: int) -> int:
    """Return the number of rounds with the least forecast, at most one for each second table."""
    most = max(1, len(workload.tables) // 2)
    candidates = sorted({min(most, math.ceil(1.25**k)) for k in range(60)})
    return min(candidates, key=lambda t: rounds_error(domain, workload, epsilon, rows, t))


def whole_rows_error(domain: Domain, workload: TableWorkload, size: int) -> float:
    """Return how far rounding to `size` rows moves a cell: some half a row, measured 0.2 to 1."""
    return min(0.5 / size, _farthest(domain, workload))


def _usual_square(orbit: Orbit) -> float:
    """Return the usual sum of squares of the orthonormal coefficients of a set of columns."""
    more = max(0, orbit.order - len(_USUAL))
    return (_USUAL[min(orbit.order, len(_USUAL)) - 1] * 0.5**more) ** 2 * orbit.size / orbit.cells


def _fitted(
    domain: Domain, workload: TableWorkload, noise: float, usual: float, dimension: float
) -> float:
    """Return the mean error of a cell from sums of squares over all cells of all tables.

    Unfitted it is σ = √(2/π) deviations, nearly. Noise in m coefficients moves a distribution over
    N cells only as far as it can follow, which grows like √(2 ln N / m): measured on several kinds
    of data, a fit brings σ to σ/√(1 + σ/σ*), σ* a quarter of that.
    """
    cells = sum(map(domain.cells_of, workload.tables))
    error = math.sqrt(2 / math.pi * noise / cells)
    if domain.cells <= MOST_FITTED:
        # every coefficient of size 1: those of a table, over its cells
        signs = math.fsum(1 - 1 / domain.cells_of(table) for table in workload.tables)
        unit = math.sqrt(2 / math.pi * signs / cells)
        reach = _TYPICAL * unit * math.sqrt(2 * math.log(domain.cells) / max(1.0, dimension))
        error /= math.sqrt(1 + error / reach)
    whole = math.hypot(error, math.sqrt(2 / math.pi * usual / cells))
    return min(whole, _farthest(domain, workload))


def _farthest(domain: Domain, workload: TableWorkload) -> float:
    """Return the mean distance of cells of tables that have nothing in common."""
    return 2 * len(workload.tables) / sum(map(domain.cells_of, workload.tables))
