"""Files that are written once: whole, under their own name, never over another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from zerodelta.errors import ParameterError
from zerodelta.privacy.readable import write_new


def no_links(*_: Any) -> None:
    raise PermissionError(1, "no links here")


@pytest.fixture(params=[True, False], ids=["links", "no links"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not request.param:
        monkeypatch.setattr(os, "link", no_links)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_once(folder: Path) -> None:
    path = folder / "a"
    write_new(path, "é")
    write_new(path, "é")
    for other in ("other", "è", ""):  # also one that is as long
        with pytest.raises(ParameterError, match="nothing is overwritten"):
            write_new(path, other)
    assert path.read_bytes() == "é".encode()
    assert names(folder) == ["a"]


def test_folders_and_links_to_nothing_are_not_written_over(folder: Path) -> None:
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "nothing")
    for name in ("folder", "link"):
        with pytest.raises(ParameterError, match="nothing is overwritten"):
            write_new(folder / name, b"")
    assert names(folder) == ["folder", "link"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_what_cannot_be_written_whole_is_not_there(
    folder: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(os, step, full)
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(OSError, match=r"No space left on device: .*/a'") as raised:
        write_new(folder / "a", "x")
    assert (raised.value.errno, raised.value.__cause__) == (28, None)
    assert names(folder) == []


def test_a_folder_that_is_not_there_is_told_by_the_name_that_was_given(folder: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        write_new(folder / "no" / "a", "x")
    assert raised.value.filename == str(folder / "no" / "a")


def test_a_secret_is_for_its_owner_only(folder: Path) -> None:
    write_new(folder / "key", b"secret", mode=0o600)
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
