"""Where the pictures of the gallery go, and their colors; git ignores the folder."""

from __future__ import annotations

import os
from pathlib import Path

from matplotlib.figure import Figure

INK, TRUTH, OTHER = "#0072b2", "#d55e00", "#009e73"
"""Told apart by color-blind readers (Okabe and Ito)."""

FOLDER = Path(os.environ.get("GALLERY", "gallery-output"))


def save(figure: Figure, name: str) -> Path:
    """Write a picture, and return where."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.svg"
    figure.savefig(path, metadata={"Date": None})
    return path
