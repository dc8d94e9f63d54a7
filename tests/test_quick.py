"""`make quick` finds the tests that reach a file."""

import pytest

from quick import ROOT, Graph, chosen

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
