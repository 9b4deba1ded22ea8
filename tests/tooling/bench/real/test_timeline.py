"""The course of a change, from one second after another."""

from bench.audit import Write
from bench.real.timeline import course
from bench.real.visibility import Sight
from lab.training.job import workers
from lab.training.log import Told


def wrote(at: float, name: str = "train-config") -> Write:
    facts = {"subresource": "", "namespace": "space", "user": "", "agent": ""}
    return Write(received=at, at=at + 0.01, verb="patch", resource="configmaps", name=name, **facts)


def saw(at: float, size: int) -> Sight:
    return Sight(at=at, content="#!/bin/sh\n" + "".join(f"echo {name}:1\n" for name in workers(size)))


def stepped(at: float, size: int) -> Told:
    return Told(event="step", time=at, host="train-worker-0", rank=0, size=size, step=1, hosts=workers(size))


def test_times_are_counted_from_the_edit_and_from_the_last_write_before_the_list_was_seen() -> None:
    found = course(
        old=1,
        new=3,
        edited=10,
        # Two workers that are Ready one after the other; another ConfigMap; a write that came later.
        writes=[wrote(5), wrote(11), wrote(12), wrote(12.2, "other"), wrote(20)],
        sights=[saw(2, 3), saw(9, 1), saw(11.5, 2), saw(12.5, 3), saw(13, 3)],
        steps=[stepped(8, 3), stepped(9.5, 1), stepped(10.5, 1), stepped(14.5, 3), stepped(30, 3)],
    )
    assert (found.title, found.visible, found.listed, found.trained) == ("1→3", 0.5, 2.5, 4.5)
    assert found.pause == 4


def test_a_pause_that_began_before_the_edit_counts_whole() -> None:
    found = course(old=3, new=1, edited=10, writes=[], sights=[], steps=[stepped(1, 3), stepped(9, 3), stepped(12, 1)])
    assert (found.pause, found.trained, found.visible, found.listed) == (3, 2, None, None)


def test_what_never_came_is_none() -> None:
    found = course(old=1, new=3, edited=10, writes=[], sights=[saw(11, 2)], steps=[stepped(11, 1), stepped(12, 1)])
    assert (found.trained, found.visible, found.listed, found.pause) == (None, None, None, 1)
