"""`make quick` finds the tests that reach a file, and says what it did not run."""

from pathlib import Path

import pytest

from quick import ROOT, Clock, Graph, chosen

PACKAGE, TESTS = ROOT / "src" / "zerodelta", ROOT / "tests"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return Graph()


@pytest.mark.parametrize(
    ("file", "test", "imports"),
    [
        ("tasks/robust.py", "tasks/test_trimmed_mean.py", 1),  # imported
        ("tasks/statistics.py", "attacks/test_known_failures_of_peers.py", 1),  # called zd.mean
        ("tasks/models.py", "tasks/test_vote.py", 1),
        ("exact/noise.py", "tasks/test_mean.py", 2),
        ("tasks/features.py", "golden/test_golden.py", 3),  # by its name
    ],
)
def test_a_test_reaches_a_file(graph: Graph, file: str, test: str, imports: int) -> None:
    assert graph.distances([PACKAGE / file])[TESTS / test] <= imports


def test_nearest_tests_come_first_and_files_run_their_own_examples(graph: Graph) -> None:
    files = {TESTS / "tasks" / "scripted.py", PACKAGE / "tasks" / "robust.py"}
    found, distances = chosen(files, graph), graph.distances(files)
    assert found[0] == PACKAGE / "tasks" / "robust.py"
    assert [distances[each] for each in found] == sorted(distances[each] for each in found)
    assert all(each.name.startswith("test_") for each in found[1:])


ALWAYS = "import time\n\ndef test_it(): time.sleep(0.3)\n\ndef test_also(): {0}\n"
REACHED = "import time, pytest\n\n@pytest.mark.parametrize('n', range(9))\ndef test_it(n): {0}\n"


def run(folder: Path, always: str, reached: str, seconds: float = 60) -> tuple[int, Clock]:
    """The exit code of a quick run of two files, and its clock."""
    paths = folder / "always" / f"test_1_{folder.name}.py", folder / f"test_2_{folder.name}.py"
    paths[0].parent.mkdir()
    for path, text in zip(paths, (ALWAYS.format(always), REACHED.format(reached)), strict=True):
        path.write_text(text, encoding="utf-8")
    clock = Clock(seconds, paths[0].parent)
    plain = ["-p", "no:xdist", "-p", "no:cacheprovider", "--import-mode=importlib"]
    code = pytest.main([*plain, f"--rootdir={folder}", *map(str, paths)], plugins=[clock])
    return clock.exit_code(code), clock


@pytest.mark.parametrize("seconds", [0.01, 60])
def test_the_clock_starts_after_completeness(tmp_path: Path, seconds: float) -> None:
    code, clock = run(tmp_path, "pass", "time.sleep(0.02)", seconds)
    assert (code, clock.finished, clock.is_up) == (0, True, seconds < 1)
    assert [path.name[:7] for path in clock.started] == ["test_1_", "test_2_"]


@pytest.mark.parametrize(
    ("always", "reached", "finished"),
    [
        ("assert 0", "pass", True),
        ("pass", "assert 0", True),
        ("raise KeyboardInterrupt", "pass", False),
        ("pass", "raise KeyboardInterrupt", True),
        ("no python", "pass", False),
        ("pass", "no python", False),
    ],
)
def test_what_fails_is_interrupted_or_cannot_be_collected_is_no_success(
    tmp_path: Path, always: str, reached: str, finished: bool
) -> None:
    code, clock = run(tmp_path, always, reached)
    assert (code, clock.finished) == (1, finished)
