"""Components are watched and ended; what ended by itself is reported with the end of its log."""

import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.children import Children, ComponentEndedError
from lab.components import Component
from lab.layout import Layout

PATH = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    layout = Layout(tmp_path)
    layout.logs.mkdir()
    with Children(layout, environment=PATH) as children:
        yield children


def shell(script: str) -> Component:
    return Component(name="part", command=("sh", "-c", script))


def failure(children: Children) -> ComponentEndedError:
    with children.pidfds() as pidfds:
        select.select(pidfds, [], [])
    with pytest.raises(ComponentEndedError) as caught:
        children.check()
    return caught.value


def test_running_components_pass_the_check(children: Children) -> None:
    children.start(shell("exec sleep 300"))
    children.check()
    (identity,) = children.identities().values()
    children.end_all()
    assert not identity.alive()
    children.check()


def test_the_end_of_a_component_is_told_with_its_log(children: Children) -> None:
    children.start(shell("seq 100; exit 4"))
    error = failure(children)
    assert "part ended with exit code 4" in str(error)
    assert str(error).endswith("\n99\n100")
    assert "\n84\n" not in str(error)
    assert not error.lost_port


def test_a_killed_component_is_told_by_its_signal(children: Children) -> None:
    children.start(shell("kill -9 $$"))
    assert f"part was killed by {signal.SIGKILL.name}" in str(failure(children))


def test_a_lost_port_is_recognised(children: Children) -> None:
    children.start(shell("echo listen tcp 127.0.0.1:1: bind: address already in use; exit 1"))
    assert failure(children).lost_port


def test_components_that_end_by_a_wanted_death_are_none_any_more(children: Children) -> None:
    children.start(shell("exec sleep 300"))
    children.start(Component(name="other", command=("sleep", "300")))
    identities = children.identities()
    children.end(identities["part"], ["part", "one that was never started"])
    assert children.identities() == {"other": identities["other"]}
