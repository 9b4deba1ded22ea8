"""The times of a resize, read from writes as the audit log has them, and what counts as too long."""

from bench.audit import Write
from bench.jobs import AGENT, JOB
from tests.campaign.neighbour_figures import Figures, slower
from tests.campaign.neighbour_victim import ScaleIn, ScaleOut, scale_in, scale_out

OURS, KWOK = "mpijob-elastic-controller/1", "kwok"


def write(at: float, verb: str, kind: str, name: str = "", *, agent: str = OURS, user: str = "u") -> Write:
    resource, _, subresource = kind.partition("/")
    return Write(
        received=at - 0.1,
        at=at,
        verb=verb,
        resource=resource,
        subresource=subresource,
        namespace="default",
        name=name,
        user=user,
        agent=agent,
    )


EDIT = write(100.1, "patch", "mpijobs", JOB, agent=AGENT)


def test_a_scale_in_is_unlisted_by_the_first_write_and_over_when_the_last_worker_is_gone() -> None:
    found = scale_in(
        [
            write(99, "patch", "configmaps"),
            EDIT,
            write(101, "patch", "configmaps"),
            *(write(106 + n, "delete", "pods", f"{JOB}-worker-{n}") for n in (1, 2)),
            *(write(107 + n, "delete", "pods", f"{JOB}-worker-{n}", agent=KWOK, user="lab-kwok") for n in (1, 2)),
            write(110, "patch", "configmaps"),
        ]
    )
    assert [round(one, 3) for one in (found.answered, found.ours, found.unlisted)] == [0.1, 0.8, 1]
    assert (round(found.deleted, 3), round(found.gone, 3)) == (8, 9)


def test_a_scale_out_is_over_when_the_list_is_written_last() -> None:
    found = scale_out(
        [
            EDIT,
            *(write(102, "create", "pods", f"{JOB}-worker-{n}", agent="x") for n in (1, 2)),
            *(write(103, "patch", "pods/status", f"{JOB}-worker-{n}", agent=KWOK, user="lab-kwok") for n in (1, 2)),
            write(104, "patch", "configmaps"),
        ]
    )
    assert [round(one, 3) for one in (found.created, found.ready, found.listed)] == [2, 3, 4]
    assert round(found.ours, 3) == 0.9


def figures(name: str, gone: float, ours: float) -> Figures:
    ins = [ScaleIn(answered=0, ours=0, unlisted=0, deleted=gone, gone=gone)]
    return Figures(name=name, ins=ins, outs=[ScaleOut(created=0, ready=0, listed=1, ours=ours)])


def test_what_takes_more_than_twice_as_long_is_named() -> None:
    alone = figures("alone", 5.0, 0.5)
    assert list(slower(figures("edits", 10.0, 1.5), alone)) == []
    assert list(slower(figures("edits", 10.5, 0.5), alone)) == ["3→1 beside edits takes 2.1 times as long as alone"]
    assert list(slower(figures("edits", 5.0, 2.5), alone)) == [
        "1→3 beside edits takes 3.0 times as long as alone by our part"
    ]
