"""The end of a supervisor that was let down, in time or not."""

import subprocess
from pathlib import Path

import pytest

from lab.layout import Layout
from lab.lifeline import end
from lab.options import Options
from lab.processes import Identity
from lab.programs import Programs
from lab.state import State, write_state

PROGRAMS = Programs(**{field: Path("/bin") / field for field in Programs.__struct_fields__})


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a lab that is up, with files of a component."""
    layout = Layout(tmp_path / "lab")
    layout.etcd.mkdir(parents=True)
    (layout.etcd / "member").touch()
    return layout


def test_one_that_does_not_end_in_time_leaves_nothing_behind(layout: Layout) -> None:
    hung = subprocess.Popen(["sleep", "600"])
    end(hung, layout, within=0.01)
    assert hung.returncode == -9
    assert not layout.root.exists()


def test_one_that_ends_in_time_has_cleared_up_itself(layout: Layout) -> None:
    done = subprocess.Popen(["true"])
    end(done, layout, within=60.0)
    assert done.returncode == 0
    assert layout.etcd.exists()


def test_what_a_failed_lab_leaves_is_kept(layout: Layout) -> None:
    hung = subprocess.Popen(["sleep", "600"])
    supervisor = Identity.of(hung.pid)
    write_state(layout, State(phase="failed", supervisor=supervisor, options=Options(), programs=PROGRAMS))
    end(hung, layout, within=0.01)
    assert hung.returncode == -9
    assert layout.state.exists()
