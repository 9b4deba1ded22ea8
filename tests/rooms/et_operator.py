"""Words for et-operator's requests."""

from random import Random
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.capabilities import told
from mpijob_elastic.capabilities.et_operator import EtOperator
from mpijob_elastic.capabilities.et_operator.actions import OwnRequest, SayPhase, SetWorkers
from mpijob_elastic.capabilities.et_operator.facts import (
    FAILED,
    PENDING,
    SCALE_INS,
    SCALING,
    UNDONE,
    Scaled,
    ScaleRequest,
)
from mpijob_elastic.decide.actions import normal
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import controller
from tests.builders import NOW, but, ref
from tests.product.capabilities.et_operator.requests import scale_in, scale_out, started
from tests.room_words import Words, short

NOTE = normal("Scaled", "because")
ONE = scale_in(1)


def requests(view: JobView, random: Random) -> JobView:
    """Some requests, of which the first may scale already, and its size may be set."""
    indices = tuple(range(random.randrange(1, 3)))
    known = [scale_in(*indices), scale_out(len(indices)), scale_out(1, name="later", owned=False)]
    first = random.choice(known)
    known[known.index(first)] = random.choice(
        [first, started(first, *indices, ago=random.choice([1, 90]))]
    )
    uid = first.metadata.uid
    view = but(view, scaled_by=random.choice(["", uid, uid + UNDONE]))
    return told(view, seen=[EtOperator.of(view, known)])


def _with(view: JobView, changed: ScaleRequest) -> JobView:
    known = view.of(EtOperator)
    found = (
        [changed if one.metadata.uid == changed.metadata.uid else one for one in known.requests]
        if known
        else []
    )
    return told(view, seen=[EtOperator.of(view, found)])


def _said(view: JobView, action: SayPhase) -> JobView:
    facts: dict[str, Any] = {"started_at": NOW} if action.phase == SCALING else {}
    return _with(
        view,
        but(action.request, phase=action.phase, pods=action.pods or action.request.pods, **facts),
    )


def _owned(view: JobView, action: OwnRequest) -> JobView:
    metadata = but(action.request.metadata, job_uid=view.ref.uid)
    return _with(view, but(action.request, metadata=metadata))


def _set(view: JobView, action: SetWorkers) -> JobView:
    parked = tuple(int(index) for index in action.parked.split(",") if index)
    view = but(view, scaled_by=action.mark, parked=parked)
    view = but(view, facts=but(view.facts, replicas=action.after))
    return but(view, replicas=view.facts.workers)


def _size(*, parked: str = "") -> SetWorkers:
    return SetWorkers(
        ref=ref("x"), before=3, after=2, request=ONE, mark="uid", parked=parked, note=NOTE
    )


WORDS = Words(
    asked={"scaled_by": lambda _, mark: {Scaled: Scaled(by=mark) if mark else None}},
    plan={
        OwnRequest: lambda action: f"own {action.request.metadata.name}",
        SayPhase: lambda action: " ".join(
            [action.request.metadata.name, action.phase, *(short(pod) for pod in action.pods)]
        ),
        SetWorkers: lambda action: (
            f"size {action.after} parked {action.parked or '-'} by {action.mark}"
        ),
    },
    said=(
        (
            OwnRequest(resource=SCALE_INS, ref=ref("in"), request=ONE, job=ref("j")),
            "let MPIJob j control ScaleIn:default/in",
        ),
        (
            SayPhase(
                resource=SCALE_INS,
                ref=ref("in"),
                request=ONE,
                phase=PENDING,
                why="it waits",
                at=NOW,
            ),
            "say Pending in ScaleIn:default/in: it waits",
        ),
        (_size(), NOTE.message),
    ),
    patches=(
        (
            OwnRequest(resource=SCALE_INS, ref=ref("x"), request=ONE, job=ref("j")),
            {},
            {"metadata": {"ownerReferences": [controller(ref("j"))]}},
        ),
        (
            _size(parked="1"),
            {},
            {
                "metadata": {"annotations": {names.PARKED: "1", names.SCALED_BY: "uid"}},
                "spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 2}}},
            },
        ),
        (
            SayPhase(
                resource=SCALE_INS, ref=ref("x"), request=ONE, phase=FAILED, why="it cannot", at=0.0
            ),
            {},
            {
                "status": {
                    "phase": FAILED,
                    "conditions": [
                        {
                            "type": FAILED,
                            "status": "True",
                            "reason": "ScalingInFailed",
                            "message": "it cannot",
                            "lastUpdateTime": "1970-01-01T00:00:00Z",
                            "lastTransitionTime": "1970-01-01T00:00:00Z",
                        }
                    ],
                    "replicaStatuses": {},
                    "restartCount": 0,
                }
            },
        ),
    ),
    refused={
        "OwnRequest, SetWorkers, SayPhase": "nothing of the job needs what somebody asks for by a ScaleIn or a ScaleOut"
    },
    queues=True,
    draw=requests,
    done={SayPhase: _said, OwnRequest: _owned, SetWorkers: _set},
)
