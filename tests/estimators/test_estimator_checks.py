"""scikit-learn's own checks pass, but for those that privacy forbids, each with its reason."""

from __future__ import annotations

import inspect
from typing import Any
from unittest import SkipTest

import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from estimators.instances import ALL, PRIVATE, name, same_noise_in_every_fit
from zerodelta.sklearn import BoundedScaler

NOISE = "determinism: compares two fits, and every fit draws fresh noise from the operating system"
VALUE = "demands an exception because of a value; values are mapped, an exception is an output"
LABELS = "demands classes read from y; they are a public parameter, other labels count as nothing"


def expected_failures(estimator: Any) -> dict[str, str]:
    # One complex entry makes the whole array complex, so refusing it would be refusing a value.
    expected = {"check_complex_data": VALUE}
    if isinstance(estimator, BoundedScaler):
        return expected
    expected["check_fit_idempotent"] = NOISE
    if is_regressor(estimator):
        expected |= {
            "check_regressor_data_not_an_array": NOISE,
            "check_regressors_int": NOISE,
            "check_supervised_y_2d": NOISE,
            "check_supervised_y_no_nan": VALUE,
        }
    elif is_classifier(estimator):
        expected |= {
            "check_classifier_data_not_an_array": NOISE,
            "check_supervised_y_2d": NOISE,
            "check_supervised_y_no_nan": VALUE,
            "check_classifiers_classes": LABELS,
            "check_classifiers_one_label": LABELS,
            "check_classifiers_regression_target": LABELS,
        }
        if len(estimator.classes) == 2:
            expected["check_classifier_not_supporting_multiclass"] = LABELS
        else:  # of three public classes, two labels in y do not make a binary problem
            expected |= {
                "check_classifiers_train": LABELS,
                "check_decision_proba_consistency": LABELS,
            }
    return expected


# Labels may agree by luck, so that a check that compares two fits may pass. Older versions take
# the strictness of pytest's configuration: run them with -o xfail_strict=false.
_LUCK = (
    {"xfail_strict": False}
    if "xfail_strict" in inspect.signature(parametrize_with_checks).parameters
    else {}
)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    ALL, expected_failed_checks=expected_failures, **_LUCK
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_s_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def checks(estimator: Any, reason: str) -> list[Any]:
    expected = expected_failures(estimator)
    return [
        check
        for _, check in estimator_checks_generator(estimator)
        if expected.get(getattr(check, "func", check).__name__) == reason
    ]


@pytest.mark.parametrize("estimator", PRIVATE, ids=name)
def test_with_the_same_noise_the_checks_of_determinism_pass(estimator: Any) -> None:
    found = checks(estimator, NOISE)
    assert found
    with same_noise_in_every_fit():
        for check in found:
            try:
                check(estimator)
            except SkipTest:  # pandas is not there, and NumPy's part has passed
                continue


@pytest.mark.parametrize("estimator", ALL, ids=name)
def test_what_is_said_to_demand_an_exception_does_so(estimator: Any) -> None:
    for check in checks(estimator, VALUE):
        with pytest.raises(AssertionError, match="raise"):
            check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=name)
def test_reasons_are_given_for_checks_that_exist(estimator: Any) -> None:
    existing = {
        getattr(check, "func", check).__name__ for _, check in estimator_checks_generator(estimator)
    }
    assert set(expected_failures(estimator)) <= existing
    assert set(expected_failures(estimator).values()) <= {NOISE, VALUE, LABELS}
