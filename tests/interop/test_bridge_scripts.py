"""The scripts of docs/bridges.md run where their library is installed, and print what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import zerodelta as zd
from zerodelta import interop

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "bridges.md").read_text(encoding="utf-8")
SCRIPTS = {
    "opendp_analysis.py": "opendp",
    "dp_accounting_events.py": "dp_accounting",
    "opacus_run.py": "opacus",
}


def test_every_script_is_on_the_page() -> None:
    folder = ROOT / "examples" / "bridges"
    assert {path.name for path in folder.glob("*.py")} == SCRIPTS.keys()
    assert all(f"examples/bridges/{script}" in PAGE for script in SCRIPTS)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_what_the_page_shows(script: str) -> None:
    pytest.importorskip(SCRIPTS[script], reason=f"{SCRIPTS[script]} is not installed")
    path = ROOT / "examples" / "bridges" / script
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"```\n{done.stdout}```\n" in PAGE


def test_the_code_on_the_page_is_that_of_the_scripts() -> None:
    texts = [(ROOT / "examples" / "bridges" / name).read_text("utf-8") for name in SCRIPTS]
    shown = re.findall(r"^```py\n(.*?)^```$", PAGE, re.M | re.S)
    assert len(shown) == len(SCRIPTS)
    assert all(any(code in text for text in texts) for code in shown)


def test_nobody_imports_a_bridge_or_its_library() -> None:
    assert set(interop.__all__) == {"dp_accounting", "exported_models", "opacus", "opendp"}
    with pytest.raises(AttributeError, match="no_such_bridge"):
        _ = interop.no_such_bridge
    code = (
        "import sys, zerodelta as zd\n"
        "zd.purify(1, space=zd.Finite(4), claim=zd.GaussianDP('0.1'), epsilon=1)\n"
        "assert not any('interop' in name for name in sys.modules)\n"
        "for name in zd.interop.__all__: getattr(zd.interop, name)\n"
        "print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "zerodelta" in loaded
    assert not loaded & {"opendp", "dp_accounting", "opacus", "torch", "skops", "skl2onnx", "onnx"}


@pytest.mark.parametrize("name", ["dp_accounting", "opendp", "opacus"])
def test_a_missing_library_is_named_with_its_extra(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(module: str) -> None:
        assert module == name

    monkeypatch.setattr("zerodelta.errors.find_spec", absent)
    calls = {
        "dp_accounting": lambda: interop.dp_accounting.claim(
            None, neighbors=zd.records.Neighbors.REPLACE
        ),
        "opendp": lambda: interop.opendp.purified(None, space=zd.Finite(2), epsilon=1, d_in=1),
        "opacus": lambda: interop.opacus.claim(None, None),
    }
    extra = name.replace("_", "-")
    with pytest.raises(ImportError, match=rf"zerodelta\[{extra}\]"):
        calls[name]()
