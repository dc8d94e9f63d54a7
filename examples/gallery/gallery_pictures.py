"""Save the pictures of the gallery, in common colors, to a folder that git ignores."""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.figure import Figure

INK, TRUTH, OTHER = "#0072b2", "#d55e00", "#009e73"
"""Colors that color-blind readers can distinguish (Okabe and Ito)."""

FOLDER = Path(os.environ.get("GALLERY", "gallery-output"))


def save(figure: Figure, name: str) -> Path:
    """Write a picture, and return its path."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path
