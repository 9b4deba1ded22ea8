"""Directories follow the XDG specification; names that could leave them are refused."""

from pathlib import Path

import pytest

from lab.errors import LabError
from lab.layout import Layout, cache_dir, state_dir


def test_xdg_variables_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/some/state")
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    assert Layout.of("one").root == Path("/some/state/mpijob-elastic/lab/one")
    assert cache_dir() == Path("/some/cache/mpijob-elastic/lab")


@pytest.mark.parametrize("unusable", ["", "relative/path"])
def test_unset_and_relative_variables_are_ignored(monkeypatch: pytest.MonkeyPatch, unusable: str) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_STATE_HOME", unusable)
    assert state_dir() == Path("/home/somebody/.local/state/mpijob-elastic/lab")


@pytest.mark.parametrize("name", ["", "..", "a/b", "-a", "a-", "A", "a" * 41])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(LabError, match="not allowed"):
        Layout.of(name)
