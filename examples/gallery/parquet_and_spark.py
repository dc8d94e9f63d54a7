"""Make the same release from a data frame, from Parquet files and from Spark (if installed).

Every statistic is a sum of integers, so all three have the same integers before the noise. The
picture shows the released mean from each source with its interval.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from gallery_pictures import INK, save
from matplotlib.figure import Figure
from sklearn.datasets import load_diabetes

import zerodelta as zd

COLUMNS = {"age": zd.number(0, 120, missing=None), "bmi": zd.number(10, 60, missing=None)}


def released(source: Any) -> tuple[float, float, float]:
    """Return the released mean of a source, with the ends of its interval."""
    people = zd.open(source, columns=COLUMNS)
    release = zd.mean(people, "bmi", epsilon=1)
    lower, upper = release.interval(0.95)
    return float(release.value), lower, upper


def main() -> None:
    frame = load_diabetes(as_frame=True, scaled=False).data[["age", "bmi"]]
    means = {"frame": released(frame)}
    with tempfile.TemporaryDirectory() as folder:
        half = len(frame) // 2
        for i, part in enumerate((frame[:half], frame[half:])):
            pq.write_table(pa.Table.from_pandas(part), f"{folder}/people-{i}.parquet")
        means["Parquet"] = released(f"{folder}/people-*.parquet")
        if "--without-spark" in sys.argv:
            print("Spark: skipped, as asked")
        elif find_spec("pyspark") and shutil.which("java"):
            means["Spark"] = on_spark(folder)
        else:
            print("Spark: skipped, pyspark or Java is not installed")
    for name, (value, lower, upper) in means.items():
        print(f"{name}: mean bmi {value:.1f}, 95 % between {lower:.1f} and {upper:.1f}")

    figure = Figure(figsize=(6.4, 2.4), layout="constrained")
    axes = figure.subplots()
    for name, (value, lower, upper) in means.items():
        axes.errorbar(
            [value], [name], xerr=[[value - lower], [upper - value]], fmt="o", color=INK, capsize=4
        )
    axes.margins(y=0.25)
    axes.set(xlabel="mean body mass index", title="The same release from each source, ε = 1 each")
    print(save(figure, "parquet_and_spark"))


def on_spark(folder: str) -> tuple[float, float, float]:
    """Release from the same files, read by a local session."""
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers need the same packages
    os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder
    session = builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        return released(
            session.read.parquet(f"{folder}/people-0.parquet", f"{folder}/people-1.parquet")
        )
    finally:
        session.stop()


if __name__ == "__main__":
    main()
