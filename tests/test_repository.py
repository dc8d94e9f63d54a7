"""The repository around the package: workflows, hooks, citation, extras, archives, words."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
import yaml

import zerodelta

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def texts(*places: str) -> dict[str, str]:
    """Return every text file below some places, by its path; this file is left out."""
    kinds = {".py", ".md", ".toml", ".yml", ".yaml", ".cff"}
    paths = [path for place in places for path in [ROOT / place, *(ROOT / place).rglob("*")]]
    return {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
        if path.suffix in kinds and path.is_file() and path != Path(__file__).resolve()
    }


def parsed(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = parsed(path)["jobs"]
    return found


def test_the_package_is_small_enough_to_see() -> None:
    files = len([*(ROOT / "src").rglob("*.py")])
    assert files <= 210, f"{files} files: what has one importer belongs into it"


def test_only_the_command_line_imports_leaves() -> None:
    """As docs/architecture.md has it; `make layers` holds the package to it."""
    layers, below = PROJECT["tool"]["importlinter"]["contracts"]
    leaves = ["paper", "lower_bounds", "audit", "coq", "interop"]
    assert layers["layers"][:2] == ["cli", " | ".join(leaves)]
    assert below["source_modules"] == ["zerodelta.cli"]
    assert {f"zerodelta.{name}" for name in leaves} - {*below["forbidden_modules"]} == {
        "zerodelta.audit",
        "zerodelta.coq",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_is_a_make_target(path: Path) -> None:
    for name, job in jobs(path).items():
        commands = [step["run"] for step in job["steps"] if "run" in step]
        assert commands, name
        for command in commands:
            match = re.fullmatch(
                r"make ([a-z-]+)((?: [A-Z]+=\S+| DEPENDENCIES=\$\{\{.*\}\})*)", command
            )
            assert match, command
            assert match[1] in TARGETS, command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_ends(path: Path) -> None:
    assert parsed(path)["permissions"] == {"contents": "read"}
    for job in jobs(path).values():
        assert job["timeout-minutes"] <= 360
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/x@v1"))


def test_the_workflow_tests_every_python_system_and_end_of_the_dependencies() -> None:
    matrix = jobs(ROOT / ".github" / "workflows" / "check.yml")["tests"]["strategy"]["matrix"]
    classifiers = PROJECT["project"]["classifiers"]
    pythons = [each.rsplit(" ", 1)[1] for each in classifiers if re.search(r":: 3\.\d+$", each)]
    assert matrix["python"] == pythons
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert {system.split("-")[0] for system in matrix["os"]} == {"ubuntu", "macos"}
    assert matrix["dependencies"] == ["highest"]
    lowest = [(each["os"], each["python"]) for each in matrix["include"]]
    assert lowest == [(system, pythons[0]) for system in matrix["os"]]
    assert all(each["dependencies"] == "lowest" for each in matrix["include"])


def test_the_workflow_runs_what_make_check_runs() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    checked = re.search(r"^check: ([a-z ]+?) *(##|$)", makefile, re.M)
    assert checked
    steps = [
        step["run"].split()[1]
        for job in jobs(ROOT / ".github" / "workflows" / "check.yml").values()
        for step in job["steps"]
        if "run" in step
    ]
    assert sorted(steps) == sorted(checked[1].split())


def test_slow_tests_run_at_night() -> None:
    nightly = parsed(ROOT / ".github" / "workflows" / "nightly.yml")
    (schedule,) = nightly[True]["schedule"]  # YAML 1.1 reads the key `on` as a boolean
    assert re.fullmatch(r"\d+ \d+ \* \* \*", schedule["cron"])
    assert any(step.get("run") == "make test-slow" for step in nightly["jobs"]["slow"]["steps"])


def test_both_ends_of_the_pythons_are_type_checked() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.findall(r"mypy --python-version (\S+)", makefile) == ["3.10", "3.14"]
    assert PROJECT["tool"]["ruff"]["target-version"] == "py310"


def test_hooks_are_the_tools_of_the_environment() -> None:
    (repository,) = parsed(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    packages = {"lint-imports": "import-linter"}
    for hook in repository["hooks"]:
        tool = re.match(r"\.venv/bin/(\S+)", hook["entry"])
        assert tool, hook["entry"]
        name = packages.get(tool[1], tool[1])
        assert any(re.match(rf"{name}\b", each) for each in EXTRAS["dev"]), name
        assert hook["language"] == "system"


def test_the_citation_names_us_and_the_paper() -> None:
    cited = parsed(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["cff-version"] == "1.2.0"
    assert cited["license"] == PROJECT["project"]["license"]
    assert "version" not in cited, "the version has one source"
    (paper,) = cited["references"]
    assert paper["identifiers"][0]["value"] == "arXiv:2503.21071"


def test_every_dependency_has_a_lower_bound() -> None:
    lists = [PROJECT["project"]["dependencies"], *EXTRAS.values()]
    for each in (each for wanted in lists for each in wanted):
        inner = re.fullmatch(r"zerodelta\[([a-z,]+)\]", each)
        assert set(inner[1].split(",")) <= set(EXTRAS) if inner else ">=" in each, each


def test_messages_name_extras_that_exist() -> None:
    named: set[str] = set()
    for text in texts("src").values():
        named |= {
            each
            for found in re.findall(r"zerodelta\[([\w,-]+)\]", text)
            for each in found.split(",")
        }
        named |= set(re.findall(r'require_extra\("\w+", "([\w-]+)"\)', text))
    assert {"sklearn", "plot", "torch"} <= named
    assert named <= set(EXTRAS)


WITHOUT_EXTRAS = """
import sys
sys.modules.update(dict.fromkeys(("sklearn", "matplotlib"), None))
import zerodelta as zd
for name in sorted({*dir(zd)} - {"sklearn"}):
    getattr(zd, name)
advice = zd.advise("mean", n=100, dimension=5, epsilon=1, data_norm=1)
asked = {
    "estimators": lambda: zd.sklearn,
    "k-means": lambda: zd.kmeans([[0.0]], clusters=1, epsilon=1, bounds=(0, 1)),
    "picture": advice.plot,
}
for name, ask in asked.items():
    try:
        ask()
    except ImportError as error:
        print(name, error)
"""


def test_what_needs_an_extra_says_so_and_the_rest_works_without() -> None:
    run = [sys.executable, "-c", WITHOUT_EXTRAS]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "estimators sklearn is not installed: pip install 'zerodelta[sklearn]'.",
        "k-means sklearn is not installed: pip install 'zerodelta[sklearn]'.",
        "picture matplotlib is not installed: pip install 'zerodelta[plot]'.",
    ]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and the sdist, offline and in a second."""
    out = tmp_path_factory.mktemp("dist")
    run = [sys.executable, "-m", "hatchling", "build", "--directory", str(out)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out


def metadata(built: Path) -> Message:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_version_has_one_source(built: Path) -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert metadata(built)["Version"] == zerodelta.__version__


def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src").rglob("*.py")}
    static = {path.relative_to(ROOT / "src").as_posix() for path in ROOT.glob("src/*/ui/static/*")}
    assert static
    assert set(names) == sources | static | {"zerodelta/py.typed"}


def test_the_sdist_holds_what_its_tests_and_documents_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    alone = {
        *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md"),
        *("SECURITY.md", "pyproject.toml", "hatch_build.py", ".ci/run", ".pre-commit-config.yaml"),
        *(".github/workflows/check.yml", ".github/workflows/nightly.yml"),
    }
    assert alone <= names
    assert set(texts("src", "tests", "docs", "bench", "examples")) <= names
    assert not [name for name in names if "cache" in name or ".venv" in name]


def test_links_of_the_readme_lead_nowhere_wrong_on_the_package_index(built: Path) -> None:
    shown = metadata(built).get_payload(decode=True)
    assert isinstance(shown, bytes)
    text, addresses = shown.decode(), PROJECT["project"].get("urls", {})
    assert text.startswith("# zerodelta")
    links = set(re.findall(r"\]\(([^)\s]+)\)", text))
    own = set(re.findall(r"\]\((https://[^)\s]+)\)", (ROOT / "README.md").read_text("utf-8")))
    assert bool(links - own) == bool(addresses)  # links to files need an address to lead to
    assert own <= links
    assert all(link.startswith("https://") for link in links)


def test_with_a_public_address_the_readme_links_to_the_files_of_the_version() -> None:
    for_the_index = runpy.run_path(str(ROOT / "hatch_build.py"))["for_the_index"]
    text = "[How](docs/how.md#why) ![A picture](docs/a.svg) [top](#top) [paper](https://x.org/1)"
    assert for_the_index(text, "https://host/us", "v1") == (
        "[How](https://host/us/blob/v1/docs/how.md#why) "
        "![A picture](https://host/us/raw/v1/docs/a.svg) [top](#top) [paper](https://x.org/1)"
    )
    assert for_the_index(text, None, "v1") == "How *A picture* [top](#top) [paper](https://x.org/1)"


BRITISH = re.compile(
    r"""(?: colour | favour | behaviour | neighbour | tumour | honour | rigour
    | centre(?!p) | metre\b | fibre | towards | learnt | spelt | burnt | whilst | artefact | licence
    | labell | modell | cancelled | travell
    | (?: minim | maxim | quant | random | normal | regular | summar | ideal | vector | discret
        | general | recogn | initial | standard | serial | categor | penal | memor | factor
        | symmetr | parametr | synchron | central | local | penal | author | custom | equal
        | final | formal | special | stabil | util ) is(?=e|ing|ation|able)
    | (?: optim | real | organ ) is(?=e|ing|ation|able)
    | analys (?=e\b|ed|ing) | emphasis (?=e|ing)
    )\w*""",
    re.VERBOSE | re.IGNORECASE,
)


def test_the_spelling_test_can_fail() -> None:
    for word in ("colours", "Neighbouring", "minimised", "quantisation", "optimise", "analysed"):
        assert BRITISH.search(word), word
    for word in (
        "optimistic",
        "organism",
        "analyses",
        "realistic",
        "center",
        "likelihood_is_exact",
    ):
        assert not BRITISH.search(word), word


def test_spelling_is_american() -> None:
    root = [path.name for path in ROOT.iterdir() if path.suffix in {".md", ".cff", ".toml", ".py"}]
    found = [
        f"{path}: {word}"
        for path, text in texts("src", "docs", "tests", "bench", "examples", *root).items()
        for word in sorted({*re.findall(r"\w+", text)})
        if BRITISH.search(word)
        and not (word == "randomise" and "tasks_peers" in path)  # a method of a peer
        and word != "labelledby"  # an attribute of HTML
    ]
    assert found == []


TERMS = re.findall(r"^- \*\*(.+?)\*\*:", GLOSSARY, re.M)


def test_the_glossary_is_in_alphabetical_order() -> None:
    plain = [re.sub("[^a-z]", "", term.lower().replace("δ", "delta")) for term in TERMS]
    assert plain == sorted(plain)
    assert len(plain) == len(set(plain))


def test_the_glossary_has_every_word_of_a_certificate_and_of_the_spine() -> None:
    text = " ".join(TERMS).lower()
    for word in (
        *("claim", "certificate", "part", "step", "theorem label", "neighbors", "unit", "proven"),
        *("asserted", "idealized", "question", "plan", "ticket", "release", "noise law"),
    ):
        assert word in text, word


RETIRED = re.compile(
    r"hidden (?:question|answer|quer)|\bstrays?\b|moves by at most|pulled in\b|so-manyth"
    r"|caller's word|sure error|random walk",
    re.IGNORECASE,
)


def test_documents_use_the_words_of_the_glossary() -> None:
    others = {"docs/theory.md", "docs/errata.md"}
    pages = texts("src", "docs", "README.md", "CONTRIBUTING.md", "SECURITY.md", "examples", "bench")
    found = [
        f"{path}: {match[0]}"
        for path, text in pages.items()
        if path not in others
        for match in RETIRED.finditer(text)
    ]
    assert found == []
