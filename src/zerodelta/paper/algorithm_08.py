"""Algorithm 8 (`alg: sparse-rec`): the sparsest vector that explains noisy measurements, by an LP.

It only ever sees what is already published, so nothing here needs to be private or exact; but what
it returns is published, so a failure of the solver becomes the vector 0 (theory A11). `highspy` is
used where installed (this file alone imports it), else the HiGHS inside scipy.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from typing import Any, Literal, TypeAlias

import numpy as np

from zerodelta.errors import ParameterError
from zerodelta.exact.arrays import Floats

Solver: TypeAlias = Literal["auto", "highspy", "scipy"]


def sparse_recovery(
    measurements: Floats,
    sketch: Floats,
    *,
    tolerance: float,
    solver: Solver = "auto",
    time_limit: float = 60.0,
) -> Floats:
    """Return argmin ‖θ‖₁ subject to ‖Φθ - b‖₁ <= ξ, and 0 if there is none or the solver fails.

    Not private by itself: post-processing of what is public. The LP has θ = u⁺ - u⁻ and the
    residual r⁺ - r⁻, all >= 0: k + 1 rows, where the paper's form has 2k + 2d + 1. A Gaussian Φ
    with k < d has full row rank, so it is feasible (theory A11).

    Parameters
    ----------
    measurements : array
        b, the k public measurements (θ_pure-k in Algorithm 7).
    sketch : array
        Φ, the public k x d matrix.
    tolerance : float
        ξ, the l1 error of the measurements that is allowed.
    solver : "auto", "highspy" or "scipy"
        Which HiGHS is called; "auto" takes highspy where it is installed.
    time_limit : float
        In seconds, after which the solver has failed.

    Returns
    -------
    array
        θ̂ of the paper, d entries.

    Examples
    --------
    >>> phi = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    >>> sparse_recovery(np.array([0.5, 0.5]), phi, tolerance=0.0)
    array([0. , 0. , 0.5])

    """
    phi, b, xi = _checked(sketch, measurements, tolerance)
    if solver not in ("auto", "highspy", "scipy"):
        raise ParameterError(
            "solver", solver, expected='"auto", "highspy" or "scipy"', remedy="leave it at auto"
        )
    installed = importlib.util.find_spec("highspy") is not None
    solve = _by_highspy if solver == "highspy" or (solver == "auto" and installed) else _by_scipy
    dimension = phi.shape[1]
    if not np.isfinite(b).all():  # computed, not chosen: no error
        return np.zeros(dimension)
    try:
        solution = solve(phi, b, xi, time_limit)
    except Exception:  # the solver may do what it likes; its failure is an output (theory A14.4)
        solution = None
    if solution is None or solution.shape != (dimension,) or not np.isfinite(solution).all():
        return np.zeros(dimension)
    return solution


def recovery_error(*, sparsity: int, tolerance: float, distortion: float = 0.25) -> float:
    """Return 4√s ξ/√(1-e): the l1 error for s-sparse vectors, *if* Φ is (e, 4s)-RWC.

    Parameters
    ----------
    sparsity : int
        s, the number of entries that are not 0 (T after T steps of Frank-Wolfe).
    tolerance : float
        ξ.
    distortion : float
        e, 1/4 in the paper.

    Returns
    -------
    float
        A bound on ‖θ̂ - θ‖₁.

    Examples
    --------
    >>> recovery_error(sparsity=4, tolerance=0.01, distortion=0.75)
    0.16

    """
    if not 0 < distortion < 1:
        raise ParameterError(
            "distortion", distortion, expected="between 0 and 1", remedy="pass 0.25, as the paper"
        )
    return 4 * math.sqrt(sparsity) * tolerance / math.sqrt(1 - distortion)


def _checked(
    sketch: Floats, measurements: Floats, tolerance: float
) -> tuple[Floats, Floats, float]:
    phi, b = np.asarray(sketch, dtype=np.float64), np.asarray(measurements, dtype=np.float64)
    if phi.ndim != 2 or min(phi.shape) < 1 or not np.isfinite(phi).all():
        raise ParameterError(
            "sketch",
            f"shape {phi.shape}",
            expected="a finite matrix with one line for each measurement",
            remedy="pass what gaussian_sketch returns",
        )
    if b.shape != phi.shape[:1]:
        raise ParameterError(
            "measurements",
            f"shape {b.shape}",
            expected=f"{len(phi)} numbers, one for each line of the sketch",
            remedy="pass Φθ plus noise",
        )
    xi = float(tolerance)
    if not 0 <= xi < math.inf:
        raise ParameterError(
            "tolerance", tolerance, expected="a finite number of at least 0", remedy="pass ξ"
        )
    return phi, b, xi


def _program(phi: Floats, xi: float) -> tuple[Floats, Floats, Floats]:
    """Return the costs of (u⁺, u⁻, r⁺, r⁻), the k equations, and the row Σ(r⁺ + r⁻) <= ξ."""
    k, d = phi.shape
    costs = np.concatenate([np.ones(2 * d), np.zeros(2 * k)])
    equations = np.hstack([phi, -phi, np.eye(k), -np.eye(k)])
    return costs, equations, 1.0 - costs


def _by_scipy(phi: Floats, b: Floats, xi: float, time_limit: float) -> Floats | None:
    from scipy.optimize import linprog

    costs, equations, budget = _program(phi, xi)
    result = linprog(
        costs,
        A_ub=budget[np.newaxis],
        b_ub=[xi],
        A_eq=equations,
        b_eq=b,
        method="highs",
        options={"time_limit": time_limit, "presolve": False},  # a dense LP has nothing to remove
    )
    return _difference(result.x, phi.shape[1]) if result.status == 0 else None


def _by_highspy(phi: Floats, b: Floats, xi: float, time_limit: float) -> Floats | None:
    highspy: Any = importlib.import_module("highspy")
    costs, equations, budget = _program(phi, xi)
    (k, d), columns = phi.shape, len(costs)
    matrix = np.vstack([equations, budget])
    lines, entries = np.nonzero(matrix.T)  # column by column
    problem: Any = highspy.HighsLp()
    problem.num_col_, problem.num_row_ = columns, k + 1
    problem.col_cost_ = costs
    problem.col_lower_, problem.col_upper_ = np.zeros(columns), np.full(columns, highspy.kHighsInf)
    problem.row_lower_ = np.append(b, -highspy.kHighsInf)
    problem.row_upper_ = np.append(b, xi)
    problem.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    problem.a_matrix_.start_ = np.searchsorted(lines, np.arange(columns + 1))
    problem.a_matrix_.index_ = entries
    problem.a_matrix_.value_ = matrix.T[lines, entries]
    engine: Any = highspy.Highs()
    engine.setOptionValue("output_flag", False)
    engine.setOptionValue("time_limit", time_limit)
    engine.setOptionValue("presolve", "off")
    engine.passModel(problem)
    engine.run()
    if engine.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return _difference(np.array(engine.getSolution().col_value), d)


def _difference(parts: Floats, dimension: int) -> Floats:
    found: Floats = parts[:dimension] - parts[dimension : 2 * dimension]
    return found + 0.0  # no negative zeros
