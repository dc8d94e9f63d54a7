"""The map of docs/paper.md, and docs/errata.md: nothing is missing, what they name exists."""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re
from functools import cache
from pathlib import Path

import pytest
from reproduce.paper_map import ENTRIES, Entry, find, render

from public_names import public_names
from zerodelta import paper

ROOT = Path(__file__).resolve().parent.parent.parent
PAPER = ROOT.parent / "shared" / "paper.tex"
ENVIRONMENTS = ("algorithm", "theorem", "lemma", "corollary")

LABELS = {
    "algorithm": (
        *("alg:main", "alg:discrete", "alg:dp_sgd", "alg:pure_dp_sgd", "alg: frank_wolfe"),
        *("alg: ktz_fw", "alg: fw_pure", "alg: sparse-rec", "alg: ptr", "alg: pure_ptr"),
        *("alg: bound_local", "alg: mode", "alg: pure_ada_ssp", "alg:MWEM"),
        *("alg: prop_sampling", "alg: pure_pmw"),
    ),
    "theorem": (
        *("thm:pure_main", "thm:index_embed", "thm:dp-sgd-pure", "thm: dp-fw-pure"),
        *("thm: util_loc_release", "thm:mode", "thm: util_adassp", "thm:query_pmw"),
        *("thm: mean_est_lb", "thm: re_dp_sgd", "thm: re_util_loc", "thm: re_mean_est_lb"),
        "thm: lb_selection",
    ),
    "corollary": ("lem: appropriate_delta", "cor: RDP_DP_SGD"),
    "lemma": (
        *("lem:W_infty_TV_q", "lem:equiv_W_infty", "lem: bas_l2_lb", "lem:appox_DP_eq_def"),
        *("lem:laplace_wasserstein", "lem:weak_triangle", "lem: laplace_NGD"),
        *("lem: zCDP_to_DP", "lem: RDP_sampled_gau", "lem: dp-sgd-cvx-lip"),
        *("lem: dp-sgd-scvx-lip-sm", "lem: laplace_perturb", "lem: util_ktz_fw"),
        *("lem: sparse-fw", "lem: packing_lb_l1", "lem: wang_lemma", "lem: pri_util_mwem"),
        *("lem: sampling_bound", "lem: bas_51", "lem: kamalika_selection"),
        *("lem: diff_eff_sparse", "lem:construct_RIP", "lem:RIP_RWC", "lem: l1_rec"),
        "lem: conc_l1_exp",
    ),
}
"""Every label of an algorithm, theorem, corollary or lemma of the paper, in its order."""


def by_label(entry: Entry) -> str:
    return entry.label


def labels_of(source: str, environment: str) -> tuple[str, ...]:
    """The labels inside an environment of the paper, those of single steps and formulas aside."""
    text = re.sub(r"(?<!\\)%.*", "", source)
    pattern = rf"\\begin{{{environment}}}(.*?)\\end{{{environment}}}"
    prefixes = ("alg", "thm", "lem", "cor")
    found = (
        label
        for body in re.findall(pattern, text, flags=re.DOTALL)
        for label in re.findall(r"\\label{([^}]*)}", body)
        if label.startswith(prefixes)
    )
    return tuple(dict.fromkeys(found))


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_every_label_of_the_paper_is_in_the_map_in_order(kind: str) -> None:
    mapped = [entry.label for entry in ENTRIES if entry.kind == kind]
    assert [label for label in mapped if not label.startswith("unlabeled")] == list(LABELS[kind])


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the checkout")
@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_the_labels_are_those_of_the_paper(kind: str) -> None:
    assert labels_of(PAPER.read_text(encoding="utf-8"), kind) == LABELS[kind]


def test_a_label_stands_once() -> None:
    labels = [entry.label for entry in ENTRIES]
    assert len(set(labels)) == len(labels)
    assert all(find(label) is not None for label in labels)
    assert find("thm:nowhere") is None


def test_the_page_of_the_paper_has_a_place_for_the_map_and_each_statement_has_a_row() -> None:
    page = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    assert page.count("<!-- printed here: map -->") == 1
    rows = [line for line in render().splitlines() if re.match(r"\| (`|unlabeled)", line)]
    assert len(rows) == len(ENTRIES)


@pytest.mark.parametrize("entry", ENTRIES, ids=by_label)
def test_every_target_exists(entry: Entry) -> None:
    assert entry.targets
    for target in entry.targets:
        if target.startswith("docs/"):
            page, _, anchor = target.partition("#")
            assert anchor in anchors(page), target
            continue
        module, _, name = target.partition(":")
        home = importlib.import_module(module)
        assert callable(getattr(home, name, None)), target
        assert name in public_names(home), f"{target} is not public"


@pytest.mark.parametrize("entry", ENTRIES, ids=by_label)
def test_every_test_exists(entry: Entry) -> None:
    assert entry.tests
    for test in entry.tests:
        path, _, name = test.partition("::")
        assert name in functions(path), test


@pytest.mark.parametrize("entry", ENTRIES, ids=by_label)
def test_a_statement_is_one_line_that_ends(entry: Entry) -> None:
    assert entry.statement.endswith((".", ")"))
    assert "\n" not in entry.statement
    assert len(entry.statement) <= 100


@cache
def functions(path: str) -> frozenset[str]:
    source = ROOT / path
    assert source.exists(), path
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@cache
def anchors(page: str) -> frozenset[str]:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#{1,6} +(.+)$", text, flags=re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()) for title in titles)
    return frozenset(title.replace(" ", "-") for title in kept)


def test_every_algorithm_has_a_flat_name() -> None:
    """What the map names first for an algorithm is at `zerodelta.paper`, whatever file it is in."""
    for entry in ENTRIES:
        if entry.kind == "algorithm":
            module, _, name = entry.targets[0].partition(":")
            assert getattr(paper, name) is getattr(importlib.import_module(module), name)
            assert name in dir(paper)


OTHERS = (
    *("rmk:delta_d", "rem:lb_alt", "appen:opt", "assump:domain", "ex:tightness", "sec:discrete"),
    *("fig:myth", "fig:f-DP", "fig:example", "fig:proof_sketch"),
    *("tab:utility_conversion", "tab: dp_erm"),
)
"""What else of the paper has a label and says something: remarks, figures, tables, discussions."""


@pytest.mark.parametrize("label", OTHERS)
def test_every_figure_table_and_remark_with_a_label_is_in_the_map(label: str) -> None:
    assert find(label) is not None


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the checkout")
def test_no_figure_table_or_remark_of_the_paper_is_forgotten() -> None:
    text = re.sub(r"(?<!\\)%.*", "", PAPER.read_text(encoding="utf-8"))
    for label in re.findall(r"\\label{((?:fig|tab|rmk|rem)[^}]*)}", text):
        assert find(label) is not None, label


# -- errata ---------------------------------------------------------------------------------------


TEXT = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
NUMBERS = tuple(f"A{number}" for number in range(1, 15))
HEADINGS = ("The paper", "What goes wrong", "Class", "Demonstration", "Fix")
CLASSES = {"break", "gap", "proof", "typo", "convention", "advice"}
SPLIT = re.split(r"^## (A\d+)\. .*$", TEXT, flags=re.MULTILINE)
SECTIONS = dict(zip(SPLIT[1::2], SPLIT[2::2], strict=True))
TABLE = dict(re.findall(r"^\| \[(A\d+)\]\([^)]*\) \| (\w+) \|", SPLIT[0], flags=re.MULTILINE))
BLOCK = re.compile(r"```python\n(.*?)```\n```\n(.*?)```", re.DOTALL)
CITED = re.compile(r"\bA(1[0-4]|[1-9])([a-z]?)(?:\.(\d+))?\b")


def parts(number: str) -> dict[str, str]:
    """Return the parts of an entry by their headings, in order."""
    found = re.split(r"^\*\*([A-Z][a-z ]+)\.\*\*", SECTIONS[number], flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def shown(number: str) -> str:
    """Return what the demonstration of an entry prints, as the page says."""
    ((_, output),) = BLOCK.findall(SECTIONS[number])
    return str(output)


def test_every_entry_has_its_section_and_its_line_in_the_table() -> None:
    assert tuple(SECTIONS) == NUMBERS
    assert tuple(TABLE) == NUMBERS


def test_the_page_begins_with_what_is_right() -> None:
    assert SPLIT[0].index("**What is right.**") < SPLIT[0].index("**What to mind.**")
    algorithms = [entry for entry in ENTRIES if entry.kind == "algorithm"]
    assert len(algorithms) == 16
    assert "All 16 algorithms" in SPLIT[0]
    assert all(entry.targets and entry.tests for entry in algorithms)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_entry_has_the_same_five_parts(number: str) -> None:
    found = parts(number)
    assert tuple(found) == HEADINGS
    assert number == "A14" or re.search(r'"[^"]{8,}"', found["The paper"]), "quote the sentence"
    assert "```" not in "".join(text for name, text in found.items() if name != "Demonstration")
    files = re.findall(r"\]\(\.\./(src/[\w/.]+)\)", found["Fix"])
    assert files
    assert all((ROOT / file).is_file() for file in files)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_class_is_the_one_in_the_table_and_defined(number: str) -> None:
    match = re.fullmatch(r" (\w+)(?: \(A1b\))?", parts(number)["Class"].strip("\n"))
    assert match is not None
    assert match[1] == TABLE[number]
    assert match[1] in CLASSES
    assert set(re.findall(r"^- \*\*(\w+)\*\*:", SPLIT[0], re.MULTILINE)) == CLASSES


@pytest.mark.parametrize("number", NUMBERS)
def test_the_demonstration_prints_what_is_shown(number: str) -> None:
    blocks = BLOCK.findall(SECTIONS[number])
    assert len(blocks) == SECTIONS[number].count("```python") == 1
    for code, output in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"docs/errata.md {number}", "exec"), {"__name__": number})
        assert printed.getvalue() == output


@pytest.mark.parametrize("number", NUMBERS)
def test_decimals_in_the_text_are_printed_by_the_demonstration(number: str) -> None:
    text = "".join(part for name, part in parts(number).items() if name != "Demonstration")
    for decimal in re.findall(r"(?<![\w.])\d+\.\d+", text):
        assert decimal in shown(number), decimal


def test_only_a_promise_that_fails_is_a_break() -> None:
    breaks = {number for number, kind in TABLE.items() if kind == "break"}
    assert breaks == {"A1", "A7", "A8"}
    for number in breaks:
        lines = re.findall(r"promised (\d+), loss (?:at least )?(\d+(?:\.\d+)?)", shown(number))
        assert any(float(loss) > int(promised) for promised, loss in lines)
    assert {number for number in NUMBERS if "(break)" in SECTIONS[number]} <= breaks


@pytest.mark.parametrize(
    ("number", "lines"),
    [
        ("A1", ("triangle: promised 2, loss at least 28", "Line 2:  loss 0.19, pure: True")),
        ("A2", ("1/min Γ = 1.1292", "q = 2, d = 1: 1.1284")),
        ("A5", ("clear: loss 5.06, pure 2-DP: False", "pure 2-DP: True", "pure 1-DP: True")),
        ("A7", ("promised 3, loss 80", "promised 2, loss 1.96, pure: True")),
        ("A8", ("d = 9: promised 3, loss at least 2.99", "d = 16: promised 3, loss at least 3.99")),
        ("A9", ("5.3333", "ln δ = -50: truth -50.9, holds: True", "from ln 1/δ = 57 on")),
        ("A10", ("exp(nε₀·score/2): loss 0.98, pure: True",)),
        ("A12", ("ε = 0.1: the chain is valid from d = 6", "ε = 1: the chain is valid from d = 3")),
        ("A14", ("Box-Muller ends at 8.57σ, NumPy's ziggurat at 12.23σ",)),
    ],
)
def test_what_the_classes_rest_on_is_shown(number: str, lines: tuple[str, ...]) -> None:
    for line in lines:
        assert line in shown(number)


def cited() -> list[tuple[str, str]]:
    """Every erratum that a file of the package names, with the file."""
    found = {
        (match[0], str(path.relative_to(ROOT)))
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if "theory A" in line
        for match in CITED.finditer(line)
    }
    return sorted(found)


def test_what_the_code_cites_is_in_the_errata() -> None:
    assert len(cited()) > 30
    for name, path in cited():
        match = CITED.fullmatch(name)
        assert match is not None
        section = SECTIONS[f"A{match[1]}"]
        if match[2]:
            assert f"**A{match[1]}{match[2]}**" in section, f"{path} cites {name}"
        if match[3]:
            assert re.search(rf"^{match[3]}\. ", section, re.MULTILINE), f"{path} cites {name}"
