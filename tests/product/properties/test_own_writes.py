"""Our webhook refuses no write of our controller, nor of the operator, whatever the fields of users say."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import jsonpatch
import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from lab.operator import objects
from lab.operator.objects import Object
from mpijob_elastic import capabilities, names
from mpijob_elastic.admission import review
from mpijob_elastic.capabilities.et_operator.actions import SetWorkers
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.decide import decide
from mpijob_elastic.decide.actions import Action, Patch
from mpijob_elastic.kube.resources import MPI_JOBS
from mpijob_elastic.model import bounds
from mpijob_elastic.model.job import JobView
from tests.builders import JOB, NOW, but
from tests.doubles.api import merged
from tests.product.properties.views import filling, lived
from tests.product.webhook.answers import NOTHING
from tests.product.webhook.objects import ELASTIC, PLAIN, body, mpi_job
from tests.room_words import rooms
from webhook.rules import handlers

# What users write, also what none can use: that came while the webhook was away.
VALUES = (
    "true",
    "false",
    "0",
    "1",
    "2",
    "4",
    "7",
    "90s",
    "1s",
    "fill",
    "cpu",
    "volcano",
    "x" * 3_000,
    "\n",
)
COMMANDS = (
    ELASTIC,
    ELASTIC,
    ELASTIC,
    PLAIN,
    [*ELASTIC[:1], "-np", "3", "--max-np", "2", *ELASTIC[3:]],
)
FINALIZERS = ["foregroundDeletion"]


def asking(view: JobView, random: Random) -> Object:
    """An MPIJob of that size whose other fields say anything."""
    keys = [key for key in sorted(capabilities.KEYS) if random.random() < 0.3]
    annotations = {key: random.choice(VALUES) for key in keys}
    if random.random() < 0.5:
        annotations |= {
            names.MIN_REPLICAS: str(random.randint(1, 4)),
            names.MAX_REPLICAS: str(random.randint(1, 7)),
        }
    if random.random() < 0.5:
        annotations["mpijob-elastic/scale-timeout"] = "1s"
    if random.random() < 0.4:
        annotations["mpijob-elastic/autoscale"] = "fill"
    for words in rooms():
        annotations |= {
            key: random.choice(said)
            for key, said in words.annotations.items()
            if random.random() < 0.2
        }
    if random.random() < 0.5:
        annotations[names.STATUS] = random.choice(
            [view.facts.notices, "Suspended: j is suspended", "x: y"]
        )
    conditions = random.choice([["Created"], ["Created", "Running"], ["Created", "Running"], None])
    job = mpi_job(
        name=JOB,
        uid=view.ref.uid,
        replicas=view.replicas,
        slots=random.randint(1, 2),
        command=random.choice(COMMANDS),
        annotations={key: value for key, value in annotations.items() if value},
        conditions=conditions,
    )
    job["metadata"] |= {"resourceVersion": "7", "labels": {}, "managedFields": [_set_by(random)]}
    if random.random() < 0.4:
        job["metadata"]["labels"][LABEL_QUEUE] = "team"
    for role in job["spec"]["mpiReplicaSpecs"].values():
        if random.random() < 0.2:
            role["template"]["spec"]["nodeName"] = "n"
        if random.random() < 0.2:
            role["template"]["spec"]["containers"][0]["resources"] = {
                "limits": random.choice([{"cpu": "many"}, {"cpu": "1"}, {}])
            }
    return _as_large_as_can_be(job) if random.random() < 0.2 else job


def _set_by(random: Random) -> Object:
    """Who set the size, which the history tells."""
    size: Object = {"f:spec": {"f:mpiReplicaSpecs": {"f:Worker": {"f:replicas": {}}}}}
    fields = random.choice([size, {}])
    manager = random.choice(["kubectl-edit", "x" * 128])
    return {"manager": manager, "time": "2020-01-01T00:00:00Z", "fieldsV1": fields}


def _as_large_as_can_be(job: Object) -> Object:
    """The job with as many labels of its pods as the controller keeps."""
    labels = (
        job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
        .setdefault("metadata", {})
        .setdefault("labels", {})
    )
    labels["own"] = ""
    facts = but(capabilities.read(json.dumps(job).encode()), notices="")
    most = bounds.LARGEST_FACTS - bounds.LONGEST_NOTICES - bounds.LATER
    labels["own"] = "x" * (most - len(msgspec.json.encode(facts, enc_hook=str)))
    return job


def seen(job: Object, view: JobView, random: Random) -> JobView:
    """The view of this job; raises msgspec.DecodeError where the controller ignores it."""
    facts = capabilities.read(json.dumps(job).encode())
    for words in rooms():
        if words.draw and random.random() < 0.3:
            view = words.draw(view, random)
    kept = replace(view, facts=facts, replicas=facts.replicas)
    return capabilities.told(kept, seen=view.capabilities)


def written(job: Object, action: Action) -> Object | None:
    """The MPIJob after a write; None where that is no change of its own fields."""
    for words in rooms():
        if sent := words.bodies.get(type(action)):
            return {**merged(job, sent)}
    if not isinstance(action, Patch) or action.resource != MPI_JOBS or action.subresource:
        return None
    change = action.body()
    changed: Object = (
        merged(job, change) if isinstance(change, dict) else jsonpatch.apply_patch(job, [*change])
    )
    return changed


def check(after: Object, before: Object | None, **request: Any) -> Object:
    """Have the webhook look at a write as the API server has it do; return what is stored."""
    for table in (handlers.mutating(NOTHING), handlers.validating(NOTHING)):
        verdict = handlers.answer(review.parse(body(after, old=before, **request)), table).verdict
        assert verdict.allowed, verdict.refusals
        after = jsonpatch.apply_patch(after, list(verdict.patch))
    return after


@given(st.integers(0, 2**63), st.sampled_from([lived, filling]))
@example(seed=461376, views=filling)
@example(seed=98, views=filling)
@example(seed=92986, views=filling)
@example(seed=245, views=lived)
def test_no_write_of_the_controller_is_refused_nor_makes_its_job_unreadable(
    seed: int, views: Any
) -> None:
    random = Random(seed)
    view = views(random)
    job = asking(view, random)
    view = seen(job, view, random)
    for action in decide(view, now=NOW).actions:
        after = written(job, action)
        # What a ScaleIn asks for may be refused: then that has failed, with these words.
        if after is not None and not isinstance(action, SetWorkers):
            check(after, job, userInfo={"username": names.CONTROLLER_USER})
            capabilities.read(json.dumps(after).encode())


@given(st.integers(0, 2**63))
def test_no_write_of_the_operator_or_of_a_finalizer_is_refused(seed: int) -> None:
    """Nor makes a status its job unreadable."""
    random = Random(seed)
    job = asking(lived(random), random)
    for made in (objects.config_map(job), objects.launcher(job), objects.worker(job, 0)):
        check(made, None)
    counts = {"Launcher": {"failed": 1}, "Worker": {"active": 10_000, "succeeded": 10_000}}
    ended = [
        {"type": kind, "status": "True", "reason": f"MPIJob{kind}"}
        for kind in ("Created", "Running", "Failed")
    ]
    times = {"startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T01:00:00Z"}
    reported = {**job, "status": {"conditions": ended, "replicaStatuses": counts, **times}}
    reported = check(reported, job, subResource="status")
    capabilities.read(json.dumps(reported).encode())
    deleting = {
        **job["metadata"],
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": FINALIZERS,
    }
    check({**job, "metadata": {**deleting, "finalizers": []}}, {**job, "metadata": deleting})
