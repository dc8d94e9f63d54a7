"""The map of docs/paper.md: nothing of the paper is missing, and everything it names exists."""

from __future__ import annotations

import ast
import importlib
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
        "alg:main",
        "alg:discrete",
        "alg:dp_sgd",
        "alg:pure_dp_sgd",
        "alg: frank_wolfe",
        "alg: ktz_fw",
        "alg: fw_pure",
        "alg: sparse-rec",
        "alg: ptr",
        "alg: pure_ptr",
        "alg: bound_local",
        "alg: mode",
        "alg: pure_ada_ssp",
        "alg:MWEM",
        "alg: prop_sampling",
        "alg: pure_pmw",
    ),
    "theorem": (
        "thm:pure_main",
        "thm:index_embed",
        "thm:dp-sgd-pure",
        "thm: dp-fw-pure",
        "thm: util_loc_release",
        "thm:mode",
        "thm: util_adassp",
        "thm:query_pmw",
        "thm: mean_est_lb",
        "thm: re_dp_sgd",
        "thm: re_util_loc",
        "thm: re_mean_est_lb",
        "thm: lb_selection",
    ),
    "corollary": ("lem: appropriate_delta", "cor: RDP_DP_SGD"),
    "lemma": (
        "lem:W_infty_TV_q",
        "lem:equiv_W_infty",
        "lem: bas_l2_lb",
        "lem:appox_DP_eq_def",
        "lem:laplace_wasserstein",
        "lem:weak_triangle",
        "lem: laplace_NGD",
        "lem: zCDP_to_DP",
        "lem: RDP_sampled_gau",
        "lem: dp-sgd-cvx-lip",
        "lem: dp-sgd-scvx-lip-sm",
        "lem: laplace_perturb",
        "lem: util_ktz_fw",
        "lem: sparse-fw",
        "lem: packing_lb_l1",
        "lem: wang_lemma",
        "lem: pri_util_mwem",
        "lem: sampling_bound",
        "lem: bas_51",
        "lem: kamalika_selection",
        "lem: diff_eff_sparse",
        "lem:construct_RIP",
        "lem:RIP_RWC",
        "lem: l1_rec",
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
