"""The lock of a lab has one holder, and none once the holder has ended."""

import shutil
from pathlib import Path

from lab.layout import Layout
from lab.lock import held, is_held


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "lab")
    assert not is_held(layout)
    with held(layout) as mine:
        assert mine
        assert is_held(layout)
        with held(layout) as theirs:
            assert not theirs
        assert is_held(layout)
    assert not is_held(layout)


def test_the_holder_may_remove_the_lab(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "lab")
    with held(layout) as first:
        shutil.rmtree(layout.root)
        with held(layout) as second:
            assert (first, second) == (True, True)
            assert is_held(layout)
    assert not is_held(layout)
