"""Publish frequent words without a list of candidates: every text can occur.

The rows are the words of scikit-learn's own documentation of its estimators: one word, one row.
A false key is an invented word: `false_keys` limits their number on average.
"""

from __future__ import annotations

import re
import string
from collections import Counter

from gallery_pictures import INK, TRUTH, save
from matplotlib.figure import Figure
from sklearn.utils import all_estimators

import zerodelta as zd


def main() -> None:
    text = " ".join(estimator.__doc__ or "" for _, estimator in all_estimators()).lower()
    words = re.findall(r"[a-z]{4,12}", text)
    universe = zd.text(12, alphabet=string.ascii_lowercase)  # public: 26 + 26² + … + 26^12 words
    release = zd.heavy_hitters(words, universe=universe, epsilon=1, false_keys="1/100")
    frequent = release.value[:12]
    for key, count in frequent:
        print(f"{key:<14}{count:>5}")
    print(release.value.warning)
    print(release.certificate.summary)

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    axes = figure.subplots()
    keys, counts = zip(*frequent, strict=True)
    axes.barh(keys, counts, color=INK, label="published")
    true = Counter(words)
    axes.plot([true[key] for key in keys], keys, "|", color=TRUTH, markersize=14, label="true")
    axes.invert_yaxis()
    axes.set(xlabel="count", title=f"Frequent words of {len(words)}, ε = 1; nobody listed them")
    axes.legend()
    print(save(figure, "unknown_keys"))


if __name__ == "__main__":
    main()
