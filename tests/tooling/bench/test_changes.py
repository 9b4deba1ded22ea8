"""The course of a change of size, from the writes after the edit."""

from dataclasses import replace
from typing import Any

import pytest

from bench.audit import Write
from bench.changes import Writer, course, writer_of
from bench.jobs import AGENT

CONTROLLER = "mpijob-elastic-controller/0.1.0"
OPERATOR = "mpi-operator"


def write(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    """One of the operator's in namespace `n`, answered within a millisecond, unless `more` says otherwise."""
    given = {"subresource": "", "namespace": "n", "user": "lab-admin", "agent": OPERATOR, **more}
    return Write(received=at - 0.001, at=at, verb=verb, resource=resource, name=name, **given)


def ours(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    user = "system:serviceaccount:mpijob-elastic:mpijob-elastic-controller"
    return write(at, verb, resource, name, user=user, agent=CONTROLLER, **more)


def edit(at: float, job: str = "train") -> Write:
    return write(at, "patch", "mpijobs", job, agent=AGENT)


def node(at: float, verb: str, resource: str, name: str) -> Write:
    return write(at, verb, resource, name, user="lab-kwok", agent="kwok/v0.8.0 (linux/amd64)")


SHRUNK = [
    write(9.0, "patch", "configmaps", "train-config"),
    edit(10.0),
    ours(10.01, "patch", "configmaps", "train-config"),
    ours(10.02, "patch", "pods", "train-launcher"),
    ours(10.03, "delete", "pods", "train-worker-2"),
    ours(10.035, "create", "events", "train.1"),
    node(10.04, "delete", "pods", "train-worker-2"),
    ours(10.05, "delete", "pods", "train-worker-1"),
    node(10.06, "delete", "pods", "train-worker-1"),
    ours(10.07, "patch", "roles", "train-launcher"),
    write(10.5, "update", "mpijobs", "train", subresource="status"),
]


def test_times_are_those_of_the_last_writes_after_the_edit() -> None:
    found = course(SHRUNK, job="train")
    times = (found.script, found.deleted, found.gone, found.role)
    assert times == pytest.approx((10, 50, 60, 70))
    assert found.created is None
    assert found.edited_at == 10.0


def test_creation_is_the_operators_last_pod() -> None:
    grown = [
        edit(10.0),
        write(10.01, "create", "pods", "train-worker-1"),
        write(10.04, "create", "pods", "train-worker-2"),
    ]
    found = course([*grown, node(10.2, "patch", "pods", "train-worker-2")], job="train")
    assert found.created == pytest.approx(40)
    assert (found.role, found.script, found.deleted, found.gone) == (None,) * 4


def test_only_the_last_edit_counts() -> None:
    found = course([*SHRUNK, edit(20.0), ours(20.03, "patch", "roles", "train-launcher")], job="train")
    assert found.edited_at == 20.0
    assert found.role == pytest.approx(30)
    assert found.script is None


def test_what_a_watcher_wrote_before_the_edit_was_answered_took_no_time() -> None:
    slow = replace(edit(10.0), at=10.5)
    found = course([slow, ours(10.2, "patch", "configmaps", "train-config")], job="train")
    assert (found.script, found.count(Writer.CONTROLLER)) == (0, 1)


def test_another_jobs_objects_do_not_count() -> None:
    others = [ours(12.0, "patch", "roles", "other-launcher"), ours(12.0, "patch", "configmaps", "other-config")]
    assert course([*SHRUNK, *others], job="train").role == pytest.approx(70)


def test_writes_are_counted_by_writer_and_kind() -> None:
    found = course(SHRUNK, job="train")
    assert found.writes[Writer.CONTROLLER, "delete pods"] == 2
    assert found.writes[Writer.OPERATOR, "update mpijobs/status"] == 1
    assert found.count(Writer.CONTROLLER) == 3
    assert found.count(Writer.OPERATOR) == 1


def test_without_an_edit_there_is_no_course() -> None:
    with pytest.raises(ValueError, match="no edit of train"):
        course(SHRUNK[2:], job="train")


@pytest.mark.parametrize(
    ("user", "agent", "writer"),
    [
        ("lab-admin", AGENT, Writer.BENCH),
        ("system:serviceaccount:mpijob-elastic:c", "mpijob-elastic-controller/0.1.0", Writer.CONTROLLER),
        ("lab-kwok", "kwok/v0.8.0", Writer.CLUSTER),
        ("system:kube-scheduler", "kube-scheduler/v0.0.0", Writer.CLUSTER),
        ("lab-admin", "kubectl/v1.34.4", Writer.CLUSTER),
        ("lab-admin", "mpi-operator", Writer.OPERATOR),
        # What the Go clients of the operators call themselves where they were not told better.
        ("lab-admin", "mpi-operator-v0.3.0/v0.0.0 (linux/amd64) kubernetes/$Format", Writer.OPERATOR),
    ],
)
def test_writers_are_told_apart(user: str, agent: str, writer: Writer) -> None:
    assert writer_of(replace(edit(0.0), user=user, agent=agent)) is writer
