"""scikit-learn's own checks pass, but for those that privacy forbids, each with its reason.

Every fit draws fresh noise from the operating system, so a check that compares two fits, or asks
for an accuracy, passes by luck. Here each fit replays the same bits: a check passes always, or it
is forbidden and fails always (expected failures are strict).
"""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from estimators.instances import ALL, PASSED, name, same_noise_in_every_fit
from zerodelta.sklearn import BoundedScaler

_ELSE = "; an instance that passes is named in PASSED of tests/estimators/instances.py"
VALUE = "demands an exception for a value; values are mapped, an exception is an output" + _ELSE
LABELS = "demands classes read from y; they are public, other labels count as nothing" + _ELSE

CHANCE = {
    "check_classifiers_one_label": "demands that the only label of y is always predicted; the "
    "other public classes are predicted too, by noise"
}
"""Neither pass nor fail: which of the two is up to the bits that are replayed."""


def forbidden(estimator: Any) -> dict[str, str]:
    # One complex entry makes the whole array complex, so refusing it would be refusing a value.
    expected = {"check_complex_data": VALUE}
    if isinstance(estimator, BoundedScaler):
        return expected
    if is_regressor(estimator):
        expected["check_supervised_y_no_nan"] = VALUE
    elif is_classifier(estimator):
        expected |= {
            "check_supervised_y_no_nan": VALUE,
            "check_classifiers_classes": LABELS,
            "check_classifiers_regression_target": LABELS,
        }
        if len(estimator.classes) == 2:
            expected["check_classifier_not_supporting_multiclass"] = LABELS
        else:  # of three public classes, two labels in y do not make a binary problem
            expected |= {
                "check_classifiers_train": LABELS,
                "check_decision_proba_consistency": LABELS,
            }
    return {check: why for check, why in expected.items() if check not in passed(estimator)}


def passed(estimator: Any) -> set[str]:
    """Return the checks that this instance passes: where one fails strictly, add it to PASSED."""
    return PASSED.get(name(estimator), set())


@parametrize_with_checks(ALL, expected_failed_checks=forbidden)  # type: ignore[untyped-decorator]
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_s_checks(estimator: Any, check: Any) -> None:
    if _name(check) in CHANCE:
        pytest.skip(CHANCE[_name(check)])
    with same_noise_in_every_fit():
        check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=name)
def test_what_is_said_to_demand_an_exception_does_so(estimator: Any) -> None:
    for _, check in estimator_checks_generator(estimator):
        if forbidden(estimator).get(_name(check)) == VALUE:
            with pytest.raises(AssertionError, match="raise"), same_noise_in_every_fit():
                check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=name)
def test_reasons_are_given_for_checks_that_exist(estimator: Any) -> None:
    existing = {_name(check) for _, check in estimator_checks_generator(estimator)}
    assert set(forbidden(estimator)) | passed(estimator) <= existing
    assert PASSED.keys() <= {name(each) for each in ALL}
    assert set(CHANCE) <= existing or not is_classifier(estimator)
    assert set(forbidden(estimator).values()) <= {VALUE, LABELS}


def _name(check: Any) -> str:
    found: str = getattr(check, "func", check).__name__
    return found
