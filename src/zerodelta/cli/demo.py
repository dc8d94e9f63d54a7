"""`zerodelta demo`: advice, a study that selects features, a model on them, two certificates.

The data (569 tumors, shipped with scikit-learn) are public, so that this demonstration may also
show how accurate the published model is. With your own data only the releases may leave the room.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline

from zerodelta.privacy.certificate import Certificate
from zerodelta.privacy.verify import verify
from zerodelta.sklearn import BoundedScaler, LogisticRegression
from zerodelta.tasks.advise import advise
from zerodelta.tasks.select_features import select_features

__all__ = ["run"]

EPSILON_STUDY, EPSILON_MODEL, CHOSEN, HELD_OUT = 1, 1, 3, 169

BOUNDS = {  # public: what such measurements may be, whoever the patients are
    "mean radius": (5, 30),
    "mean texture": (5, 40),
    "mean perimeter": (30, 200),
    "mean area": (100, 2600),
    "mean smoothness": ("0.05", "0.17"),
    "mean compactness": (0, "0.4"),
    "mean concavity": (0, "0.5"),
    "mean concave points": (0, "0.25"),
    "mean symmetry": ("0.1", "0.35"),
    "mean fractal dimension": ("0.04", "0.1"),
}
NAMES = list(BOUNDS)


def run(out: Path) -> Path:
    """Run the demonstration, write releases and a picture into a folder, and return it."""
    out.mkdir(parents=True, exist_ok=True)
    console = Console()
    features, labels = _rows()
    rows, fresh = slice(None, -HELD_OUT), slice(-HELD_OUT, None)

    console.rule("1. Advice: which method, before any data is read")
    advice = advise("logistic", n=len(labels[rows]), dimension=CHOSEN, epsilon=EPSILON_MODEL)
    console.print(str(advice), soft_wrap=True, highlight=False)

    console.rule(f"2. A study selects {CHOSEN} of {len(NAMES)} features")
    study = select_features(
        np.column_stack([features, labels])[rows],
        target=len(NAMES),
        size=CHOSEN,
        epsilon=EPSILON_STUDY,
        bounds=_ends(NAMES),
        target_bounds=(0, 1),
        method="gram",
    )
    chosen = [NAMES[i] for i in study.value]
    console.print(f"published: {', '.join(chosen)}")
    console.print(study.certificate.summary)

    console.rule("3. A logistic regression on them")
    columns = list(study.value)
    model = make_pipeline(
        BoundedScaler(bounds=_ends(chosen), data_norm=1, radius=1),
        LogisticRegression(epsilon=EPSILON_MODEL, data_norm=1, classes=[0, 1]),
    )
    model.fit(features[rows][:, columns], labels[rows])
    fitted = model[-1]
    accuracy = float(model.score(features[fresh][:, columns], labels[fresh]))
    console.print(fitted.certificate_.summary)

    console.rule("4. Anyone can check both certificates")
    weights = dict(zip(chosen, fitted.coef_.ravel().tolist(), strict=True))
    value = {
        "coefficients": weights,
        "intercept": float(fitted.intercept_[0]),
        **_scaling(model[0]),
    }
    console.print("published: malignant if the sum of these is above 0, features scaled by bounds")
    for name, number in [*weights.items(), ("intercept", value["intercept"])]:
        console.print(f"  {name:<24} {number:+.2f}", highlight=False)
    written = [
        _write(out / "features.json", chosen, study.certificate),
        _write(out / "model.json", value, fitted.certificate_),
    ]
    for path in written:
        certificate = json.loads(path.read_text(encoding="utf-8"))["certificate"]
        proven = verify(json.dumps(certificate))
        console.print(f"{path}: {'verified' if proven else 'NOT VERIFIED'}")
    picture = _draw(out / "model.svg", weights, accuracy)
    console.print(_summary(chosen, accuracy, 1 - labels[fresh].mean(), picture))
    return out


def _rows() -> tuple[Any, Any]:
    """Return features and labels (1: malignant) in a fixed order."""
    data = load_breast_cancer()
    positions = [list(data.feature_names).index(name) for name in NAMES]
    order = np.random.default_rng(0).permutation(len(data.target))  # public: who is held out
    return data.data[order][:, positions], 1 - data.target[order]


def _ends(names: list[str]) -> tuple[list[Any], list[Any]]:
    return [BOUNDS[name][0] for name in names], [BOUNDS[name][1] for name in names]


def _scaling(scaler: BoundedScaler) -> dict[str, Any]:
    """Return what is needed beside coefficients to predict: how rows become what they multiply.

    A feature x is ((2x - lower - upper)/(upper - lower))/√(number of features), as `radius=1` says.
    """
    lower, upper = ([float(end) for end in ends] for ends in scaler.bounds)
    return {"lower": lower, "upper": upper, "divided_by": float(np.sqrt(len(lower)))}


def _write(path: Path, value: Any, certificate: Certificate) -> Path:
    text = {"value": value, "certificate": json.loads(certificate.to_json())}
    path.write_text(json.dumps(text, indent=2, ensure_ascii=False), encoding="utf-8")
    return path


def _draw(path: Path, weights: dict[str, float], accuracy: float) -> Path:
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 1 + 0.5 * len(weights)), layout="constrained")
    axes.barh(list(weights), list(weights.values()), color="#0072B2")
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlabel("published coefficient (features scaled by public bounds)")
    axes.set_title(
        f"Malignant or not: pure ε = {EPSILON_STUDY} + {EPSILON_MODEL}, δ = 0; "
        f"{accuracy:.0%} of held-out tumors right",
        size=10,
    )
    axes.invert_yaxis()
    figure.savefig(path)
    plt.close(figure)
    return path


def _summary(chosen: list[str], accuracy: float, benign: float, picture: Path) -> Table:
    table = Table("what", "published", title="Summary", show_header=False)
    table.add_row("features", ", ".join(chosen))
    table.add_row("held-out accuracy", f"{accuracy:.3f} (always benign: {benign:.3f})")
    table.add_row("privacy", f"pure ε = {EPSILON_STUDY + EPSILON_MODEL} in total, δ = 0")
    table.add_row("picture", str(picture))
    return table
