"""The course of a change of size, from the writes after the edit."""

from dataclasses import replace
from typing import Any

import pytest

from bench.audit import Write
from bench.changes import Writer, course, writer_of
from bench.jobs import AGENT

CONTROLLER = "mpijob-elastic-controller/0.1.0"
OPERATOR = "mpi-operator"
ACCOUNT = "system:serviceaccount:mpi-operator:mpi-operator"


def write(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    """One of the operator's in namespace `n`, answered within a millisecond, unless `more` says otherwise."""
    given = {"subresource": "", "namespace": "n", "user": ACCOUNT, "agent": OPERATOR, **more}
    return Write(received=at - 0.001, at=at, verb=verb, resource=resource, name=name, **given)


def ours(at: float, verb: str, resource: str, name: str = "", **more: Any) -> Write:
    user = "system:serviceaccount:mpijob-elastic:mpijob-elastic-controller"
    return write(at, verb, resource, name, user=user, agent=CONTROLLER, **more)


def edit(at: float, job: str = "train") -> Write:
    return write(at, "patch", "mpijobs", job, user="lab-admin", agent=AGENT)


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


GROWN = [
    edit(10.0),
    write(10.01, "create", "pods", "train-worker-1"),
    write(10.04, "create", "pods", "train-worker-2"),
    node(10.2, "patch", "pods", "train-worker-2"),
]
OTHERS = [
    ours(12.0, "patch", "roles", "other-launcher"),
    ours(12.0, "patch", "configmaps", "other-config"),
]
AGAIN = [edit(20.0), ours(20.03, "patch", "roles", "train-launcher")]
SLOW = [replace(edit(10.0), at=10.5), ours(10.2, "patch", "configmaps", "train-config")]


@pytest.mark.parametrize(
    ("writes", "times"),
    [
        pytest.param(SHRUNK, (70, None, 10, 50, 60), id="the last writes after the edit"),
        pytest.param([*SHRUNK, *OTHERS], (70, None, 10, 50, 60), id="not of another job"),
        pytest.param(GROWN, (None, 40, None, None, None), id="the operator's last pod"),
        pytest.param(
            [*SHRUNK, *AGAIN], (30, None, None, None, None), id="only the last edit counts"
        ),
        pytest.param(
            SLOW,
            (None, None, 0, None, None),
            id="a write before the edit was answered took no time",
        ),
    ],
)
def test_times_of_a_change(writes: list[Write], times: tuple[float | None, ...]) -> None:
    found = course(writes, job="train")
    assert (found.role, found.created, found.script, found.deleted, found.gone) == tuple(
        time if time is None else pytest.approx(time) for time in times
    )
    assert found.edited_at == max(write.at for write in writes if write.agent == AGENT)


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
        (
            "system:serviceaccount:mpijob-elastic:c",
            "mpijob-elastic-controller/0.1.0",
            Writer.CONTROLLER,
        ),
        ("lab-kwok", "kwok/v0.8.0", Writer.CLUSTER),
        ("system:kube-scheduler", "kube-scheduler/v0.0.0", Writer.CLUSTER),
        ("lab-admin", "kubectl/v1.34.4", Writer.CLUSTER),
        (
            "system:serviceaccount:kube-system:generic-garbage-collector",
            "kube-controller-manager/v1.34.4",
            Writer.CLUSTER,
        ),
        # As the release's own Deployment runs it, and as a lab runs each release.
        (ACCOUNT, OPERATOR, Writer.OPERATOR),
        (f"{ACCOUNT}-v0.2.3", OPERATOR, Writer.OPERATOR),
        # What the Go clients of the operators call themselves where they were not told better.
        (
            f"{ACCOUNT}-v0.3.0",
            "mpi-operator-v0.3.0/v0.0.0 (linux/amd64) kubernetes/$Format",
            Writer.OPERATOR,
        ),
    ],
)
def test_writers_are_told_apart(user: str, agent: str, writer: Writer) -> None:
    assert writer_of(replace(edit(0.0), user=user, agent=agent)) is writer


def test_the_steps_of_a_change_are_its_writes_by_writer_and_kind() -> None:
    steps = course(SHRUNK, job="train").steps
    deleted = steps[Writer.CONTROLLER, "delete pods"]
    assert deleted.received == pytest.approx(29)
    assert deleted.answered == pytest.approx(50)
    listed = steps[Writer.CONTROLLER, "patch configmaps"]
    assert listed.received == pytest.approx(9)
    assert listed.answered == pytest.approx(10)
    assert (Writer.OPERATOR, "patch configmaps") not in steps, "it was before the edit"
