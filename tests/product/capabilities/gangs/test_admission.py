"""The marks of a gang's pods, and what is refused of an MPIJob that asks for one."""

import json
from collections.abc import Collection
from typing import Any

import pytest

from mpijob_elastic import capabilities
from mpijob_elastic.admission.interface import Lookup
from mpijob_elastic.capabilities.gangs.admission import (
    GANG_FIELD,
    QUEUE_FIELD,
    GangAdmission,
    Status,
    VolcanoQueue,
    read_queue,
)
from mpijob_elastic.capabilities.gangs.facts import (
    GANG,
    KUBERNETES_POD_GROUPS,
    KUBERNETES_POD_GROUPS_OF_1_36,
)
from mpijob_elastic.kube.meta import KubeObject, ObjectMeta
from mpijob_elastic.kube.resources import Resource
from mpijob_elastic.model import mpijob
from tests.product.webhook.answers import facts, own, patched
from tests.product.webhook.objects import PLAIN, Object, launcher_pod, mpi_job, worker_pod

VOLCANO, COSCHEDULING, KOORDINATOR, KUBERNETES, WORKERS_ONLY = (
    {"mpijob-elastic/gang": scheduler}
    for scheduler in ("volcano", "coscheduling", "koordinator", "kubernetes", "kubernetes-workers")
)
LEAST = {"mpijob-elastic/min-replicas": "2"}
QUEUES = {"team": "Open", "new": "", "shut": "Closed", "ending": "Closing"}


NEW, OLD = frozenset({KUBERNETES_POD_GROUPS}), frozenset({KUBERNETES_POD_GROUPS_OF_1_36})
NOBODY_KNOWS = Lookup()


class Seen(Lookup):
    """The queues that the webhook has seen, and the resources that the API serves."""

    def __init__(self, served: Collection[Resource] = NEW) -> None:
        self.served = served

    def serves(self, resource: Resource) -> bool:
        return resource in self.served

    def named(self, _resource: Resource, name: str, _namespace: str = "") -> KubeObject | None:
        state = QUEUES.get(name)
        return (
            None
            if state is None
            else VolcanoQueue(metadata=ObjectMeta(name=name), status=Status(state=state))
        )


QUOTA = "quota.scheduling.koordinator.sh/name"
PREEMPTIBLE = "quota.scheduling.koordinator.sh/preemptible"


def asking(
    asked: Object = VOLCANO,
    *,
    labels: Object | None = None,
    template: Object | None = None,
    **job: Any,
) -> Object:
    """A job of four that asks for a gang and may be two, with these labels, and this in its workers' template."""
    made = mpi_job(**{"replicas": 4, "annotations": asked | LEAST, **job})
    made["metadata"]["labels"] = labels or {}
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"] |= template or {}
    return made


def pod(made: Object, **spec: Any) -> Object:
    return {
        **made,
        "metadata": {**made["metadata"], "annotations": {}},
        "spec": made["spec"] | spec,
    }


LAUNCHER = pod(launcher_pod())
WORKERS = [pod(worker_pod(index)) for index in range(4)]


def marked(
    made: Object, *, labels: Object | None = None, annotations: Object | None = None, **spec: Any
) -> Object:
    """The pod with these marks beside what it has."""
    metadata = made["metadata"]
    both = {
        "labels": metadata["labels"] | (labels or {}),
        "annotations": metadata["annotations"] | (annotations or {}),
    }
    return {**made, "metadata": metadata | both, "spec": made["spec"] | spec}


def of_volcano(role: str, preemptable: str, scheduler: str = "volcano") -> dict[str, Any]:
    keys = {"scheduling.k8s.io/group-name": "train", "volcano.sh/task-spec": role}
    return {
        "annotations": keys | {"volcano.sh/preemptable": preemptable},
        "schedulerName": scheduler,
    }


def of_koordinator(preemptible: str = "") -> dict[str, Any]:
    quota = {QUOTA: "team", PREEMPTIBLE: preemptible} if preemptible else {}
    labels = {"pod-group.scheduling.sigs.k8s.io": "train", **quota}
    gang_name = {"gang.scheduling.koordinator.sh/name": "train"}
    return {"labels": labels, "annotations": gang_name, "schedulerName": "koord-scheduler"}


KEPT, SPARE = of_volcano("worker", "false"), of_volcano("worker", "true")
IN_QUOTA = asking(KOORDINATOR, labels={QUOTA: "team"})
UNSPARED = asking(
    KOORDINATOR, labels={QUOTA: "team"}, template={"metadata": {"labels": {PREEMPTIBLE: "false"}}}
)
SAID = marked(WORKERS[3], annotations={"volcano.sh/preemptable": "false", "mine": "yes"})
OF_THE_DEFAULT, OF_ANOTHER = (
    pod(worker_pod(3), schedulerName=name) for name in ("default-scheduler", "mine")
)
IN_POD_GROUP = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
IN_SCHEDULING_GROUP = {"schedulingGroup": {"podGroupName": "train"}}


@pytest.mark.parametrize(
    ("made", "job", "marks"),
    [
        pytest.param(LAUNCHER, asking(), of_volcano("launcher", "false"), id="a launcher is kept"),
        pytest.param(WORKERS[1], asking(), KEPT, id="the last of the least"),
        pytest.param(WORKERS[2], asking(), SPARE, id="the first above may be preempted"),
        pytest.param(WORKERS[3], asking(annotations=VOLCANO), KEPT, id="without a least size none"),
        pytest.param(WORKERS[3], asking(command=PLAIN), KEPT, id="nor of a plain job"),
        pytest.param(SAID, asking(), KEPT, id="what the template says stays"),
        pytest.param(
            OF_ANOTHER, asking(), of_volcano("worker", "true", "mine"), id="its scheduler, too"
        ),
        # As the API server writes it for none.
        pytest.param(OF_THE_DEFAULT, asking(), SPARE, id="no scheduler"),
        pytest.param(
            WORKERS[3],
            asking(COSCHEDULING),
            IN_POD_GROUP,
            id="coscheduling: whose scheduler the user says",
        ),
        pytest.param(LAUNCHER, asking(KOORDINATOR), of_koordinator(), id="koordinator: launcher"),
        pytest.param(
            WORKERS[2], asking(KOORDINATOR), of_koordinator(), id="koordinator: without a quota"
        ),
        pytest.param(
            LAUNCHER, IN_QUOTA, of_koordinator("false"), id="koordinator: launcher in a quota"
        ),
        pytest.param(WORKERS[1], IN_QUOTA, of_koordinator("false"), id="koordinator: kept"),
        pytest.param(WORKERS[2], IN_QUOTA, of_koordinator("true"), id="koordinator: spare"),
        pytest.param(
            WORKERS[3], UNSPARED, of_koordinator("false"), id="koordinator: the template decides"
        ),
        pytest.param(WORKERS[3], asking(KUBERNETES), IN_SCHEDULING_GROUP, id="kubernetes: a field"),
        pytest.param(WORKERS[0], mpi_job(), {}, id="no gang"),
    ],
)
def test_a_pod_gets_the_marks_of_its_gang(made: Object, job: Object, marks: dict[str, Any]) -> None:
    assert patched(own(GangAdmission(), Seen()), made, job) == marked(made, **marks)


@pytest.mark.parametrize(
    ("pod_", "asked", "lookup", "marks"),
    [
        pytest.param(WORKERS[0], KUBERNETES, Seen(OLD), IN_SCHEDULING_GROUP, id="v1alpha2"),
        pytest.param(WORKERS[0], KUBERNETES, Seen(()), {}, id="no PodGroups that we know"),
        pytest.param(WORKERS[0], KUBERNETES, NOBODY_KNOWS, {}, id="nobody knows yet"),
        pytest.param(LAUNCHER, KUBERNETES, Seen(), IN_SCHEDULING_GROUP, id="launcher"),
        pytest.param(LAUNCHER, WORKERS_ONLY, Seen(), {}, id="launcher outside the gang"),
        pytest.param(WORKERS[0], WORKERS_ONLY, Seen(), IN_SCHEDULING_GROUP, id="its worker"),
        pytest.param(WORKERS[1], VOLCANO, NOBODY_KNOWS, KEPT, id="volcano: served or not"),
    ],
)
def test_only_pods_of_a_pod_group_that_can_be_made_are_marked_for_it(
    pod_: Object, asked: Object, lookup: Lookup, marks: dict[str, Any]
) -> None:
    """With the gate and without the API a marked pod would wait for ever."""
    assert patched(own(GangAdmission(), lookup), pod_, asking(asked)) == marked(pod_, **marks)


def refused(
    job: Object, old: Object | None = None, *, served: Collection[Resource] = NEW
) -> list[str]:
    decoded, before = mpijob.decode(json.dumps(job).encode()), facts(old) if old else None
    new, seen = capabilities.of(decoded), Seen(served)
    return [str(found) for found in GangAdmission().refusals(decoded, new, before, seen)]


def warned(job: Object, *, lookup: Lookup) -> list[str]:
    decoded = mpijob.decode(json.dumps(job).encode())
    return list(GangAdmission().warnings(decoded, capabilities.of(decoded), None, lookup))


def in_queue(queue: str) -> Object:
    return asking({**VOLCANO, "scheduling.volcano.sh/queue-name": queue})


STARTED: dict[str, Any] = {"conditions": ["Created"]}
OFF = {**VOLCANO, "mpijob-elastic/enabled": "false"}
CHANGED = f"{GANG_FIELD}: cannot change once the job has started: its pods keep their marks; delete and recreate the job"
UNKNOWN = f"{QUEUE_FIELD}: there is no queue typo; see `kubectl get queues.scheduling.volcano.sh`"
CLOSED = f"{QUEUE_FIELD}: queue {{0}} is {{1}} and takes no more jobs"


@pytest.mark.parametrize(
    ("old", "job", "said"),
    [
        pytest.param(None, in_queue("team"), "", id="an open queue"),
        pytest.param(None, in_queue("new"), "", id="a queue that is new"),
        pytest.param(None, in_queue("typo"), UNKNOWN, id="no such queue"),
        pytest.param(in_queue("team"), in_queue("typo"), UNKNOWN, id="changed to no queue"),
        pytest.param(in_queue("typo"), in_queue("typo"), "", id="no such queue before"),
        pytest.param(None, in_queue("shut"), CLOSED.format("shut", "Closed"), id="a closed queue"),
        pytest.param(
            None, in_queue("ending"), CLOSED.format("ending", "Closing"), id="a closing queue"
        ),
        pytest.param(
            asking(**STARTED), asking({}, **STARTED), CHANGED, id="started, without a gang"
        ),
        pytest.param(
            asking(**STARTED),
            asking(annotations=VOLCANO, **STARTED),
            "",
            id="started, the same gang",
        ),
        pytest.param(asking(), asking({}), "", id="not started"),
        pytest.param(
            asking(**STARTED),
            asking(annotations=OFF, **STARTED),
            "",
            id="no longer elastic, the same gang",
        ),
        pytest.param(
            asking(annotations=OFF, **STARTED),
            asking(**STARTED),
            "",
            id="elastic again, the same gang",
        ),
    ],
)
def test_what_a_job_asks_for_by_mistake_is_refused_once(
    old: Object | None, job: Object, said: str
) -> None:
    assert refused(job, old) == ([said] if said else [])


@pytest.mark.parametrize(
    ("scheduler", "kind", "mark", "value"),
    [
        ("volcano", "labels", "scheduling.x-k8s.io/pod-group", "g"),
        ("volcano", "annotations", "gang.scheduling.koordinator.sh/name", "g"),
        ("volcano", "annotations", "scheduling.k8s.io/group-name", "other"),
        ("coscheduling", "annotations", "scheduling.k8s.io/group-name", "train"),
        ("coscheduling", "labels", "scheduling.x-k8s.io/pod-group", "other"),
        ("coscheduling", "labels", "pod-group.scheduling.sigs.k8s.io", "train"),
        ("koordinator", "labels", "pod-group.scheduling.sigs.k8s.io", "other"),
        ("koordinator", "annotations", "scheduling.k8s.io/group-name", "train"),
        ("kubernetes", "annotations", "scheduling.k8s.io/group-name", "train"),
    ],
)
def test_marks_of_two_schedulers_are_refused(
    scheduler: str, kind: str, mark: str, value: str
) -> None:
    template = {"metadata": {kind: {mark: value}}}
    said = f"{GANG_FIELD}: {scheduler} and {mark} in a template are marks of two schedulers; remove one"
    assert refused(asking({"mpijob-elastic/gang": scheduler}, template=template)) == [said]
    assert refused(asking({}, template=template)) == []


def ranked(
    asked: Object, launcher: Object | None = None, worker: Object | None = None, **job: Any
) -> Object:
    """A job that asks for a gang, with these fields in the specs of its templates."""
    made = asking(asked, **job)
    for role, more in (("Launcher", launcher), ("Worker", worker)):
        made["spec"]["mpiReplicaSpecs"][role]["template"]["spec"] |= more or {}
    return made


LOW, HIGH = {"priorityClassName": "low"}, {"priorityClassName": "high"}
NEVER, LOWER = ({"preemptionPolicy": policy} for policy in ("Never", "PreemptLowerPriority"))
UNEQUAL = (
    f"{GANG_FIELD}: Kubernetes 1.37 starts no pod of a gang whose launcher has {{0}} and whose "
    f'workers have {{1}}; make them equal, or set {GANG}: "kubernetes-workers", which leaves the '
    "launcher outside the gang"
)
CLASSES = UNEQUAL.format("priorityClassName high", "priorityClassName low")
ONE_CLASS = UNEQUAL.format("no priorityClassName", "priorityClassName low")
POLICIES = UNEQUAL.format("preemptionPolicy Never", "preemptionPolicy PreemptLowerPriority")
OF_ANOTHER_PRIORITY = (
    f"{GANG_FIELD}: the priorityClassName of its pods cannot change from low to high once the job "
    "has started: its PodGroup keeps the priority, and Kubernetes 1.37 starts no pod of another; "
    "delete and recreate the job"
)


@pytest.mark.parametrize(
    ("old", "job", "said"),
    [
        pytest.param(None, ranked(KUBERNETES, LOW, LOW), "", id="one class"),
        pytest.param(None, ranked(KUBERNETES, HIGH, LOW), CLASSES, id="two classes"),
        pytest.param(None, ranked(KUBERNETES, None, LOW), ONE_CLASS, id="a class and none"),
        pytest.param(None, ranked(KUBERNETES, NEVER, LOWER), POLICIES, id="two policies"),
        # A policy that is not named is that of the class, and a pod that contradicts its class is
        # refused by the API server.
        pytest.param(None, ranked(KUBERNETES, NEVER), "", id="a policy and none"),
        pytest.param(None, ranked(WORKERS_ONLY, HIGH, LOW), "", id="the launcher outside"),
        pytest.param(None, ranked(VOLCANO, HIGH, LOW), "", id="of another scheduler"),
        pytest.param(
            ranked(KUBERNETES, HIGH, LOW), ranked(KUBERNETES, HIGH, LOW), "", id="it was so before"
        ),
        pytest.param(
            ranked(KUBERNETES, LOW, LOW), ranked(KUBERNETES, HIGH, LOW), CLASSES, id="edited"
        ),
        pytest.param(
            ranked(KUBERNETES, LOW, LOW, **STARTED),
            ranked(KUBERNETES, HIGH, HIGH, **STARTED),
            OF_ANOTHER_PRIORITY,
            id="edited once it has started",
        ),
        pytest.param(
            ranked(WORKERS_ONLY, LOW, LOW, **STARTED),
            ranked(WORKERS_ONLY, HIGH, LOW, **STARTED),
            "",
            id="a launcher outside, edited",
        ),
        pytest.param(
            ranked(KUBERNETES, **STARTED),
            ranked(WORKERS_ONLY, **STARTED),
            CHANGED,
            id="the launcher leaves a gang that has started",
        ),
    ],
)
def test_a_gang_of_kubernetes_has_one_priority(old: Object | None, job: Object, said: str) -> None:
    assert refused(job, old) == ([said] if said else [])


def test_in_1_36_a_gang_may_have_two_priorities() -> None:
    assert refused(ranked(KUBERNETES, HIGH, LOW), served=OLD) == []
    assert refused(ranked(KUBERNETES, HIGH, LOW), served=()) == [CLASSES]


def scheduled_by(scheduler: str, asked: Object) -> Object:
    """A job whose workers name a scheduler."""
    job = asking(asked)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = scheduler
    return job


ALONE = (
    f'schedulerName is volcano without {GANG}: "volcano": each pod is a gang of its own, unless mpi-operator '
    "runs with --gang-scheduling"
)
BY_WHOM = "no schedulerName in the templates: the pods are a gang only if the default scheduler runs Coscheduling"
TWO = "launcher and workers name different schedulers: Kubernetes then starts no pod of the gang"


@pytest.mark.parametrize(
    ("job", "said"),
    [
        pytest.param(asking(), "", id="nothing to doubt"),
        pytest.param(asking(KUBERNETES), "", id="one scheduler in a gang of kubernetes"),
        pytest.param(scheduled_by("volcano", {}), ALONE, id="volcano without a gang"),
        pytest.param(asking(COSCHEDULING), BY_WHOM, id="coscheduling by whom"),
        pytest.param(
            scheduled_by("mine", KUBERNETES), TWO, id="two schedulers in a gang of kubernetes"
        ),
        pytest.param(
            scheduled_by("mine", WORKERS_ONLY), "", id="another scheduler of a launcher outside"
        ),
    ],
)
def test_doubts(job: Object, said: str) -> None:
    assert warned(job, lookup=Seen()) == ([said] if said else [])


def test_queues_that_cannot_be_read_are_a_doubt_and_refuse_nothing() -> None:
    decoded = mpijob.decode(json.dumps(in_queue("team")).encode())
    assert list(GangAdmission().refusals(decoded, capabilities.of(decoded), None, Lookup())) == []
    said = "queue team could not be checked: the queues of Volcano cannot be read"
    assert warned(in_queue("team"), lookup=Lookup()) == [said]


@pytest.mark.parametrize(("more", "state"), [({}, ""), ({"status": {"state": "Open"}}, "Open")])
def test_a_queue_is_read_with_or_without_a_state(more: Object, state: str) -> None:
    assert (
        read_queue(json.dumps({"metadata": {"name": "q"}, **more}).encode()).status.state == state
    )


def under_kai(
    asked: Object | None = None,
    *,
    roles: tuple[str, ...] = ("Launcher", "Worker"),
    first: Object | None = None,
    gang: object = None,
    **job: Any,
) -> Object:
    """A job of four that may be two, whose templates name KAI.

    first: labels of the launcher's template. gang: its schedulingPolicy.
    """
    made = asking(asked or {}, **job)
    templates = {role: made["spec"]["mpiReplicaSpecs"][role]["template"] for role in roles}
    for template in templates.values():
        template["spec"]["schedulerName"] = "kai-scheduler"
    made["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["metadata"] = {"labels": first or {}}
    made["spec"]["runPolicy"] = {"schedulingPolicy": gang} if gang is not None else None
    return made


FIRST = {"kai.scheduler/task-priority": "1"}
EVICTED = "KAI evicts the whole job when a worker is missing for 60 s; "
LEAST_OF_IT = f"{EVICTED}set spec.runPolicy.schedulingPolicy.minAvailable to 3"
PATIENT = f"{EVICTED}annotate it kai.scheduler/staleness-grace-period: -1s"
YOUNGEST = "KAI takes the youngest pod first, the launcher; give its template the label kai.scheduler/task-priority"
APART = "KAI waits for the launcher and the workers, so both templates must name kai-scheduler"
GROUPED = "mpi-operator v0.2.3 ignores schedulingPolicy of spec.runPolicy; for a gang annotate the job mpijob-elastic/gang"
FOR_EVER = {"kai.scheduler/staleness-grace-period": "-1s"}


@pytest.mark.parametrize(
    ("job", "said"),
    [
        pytest.param(under_kai(first=FIRST), [LEAST_OF_IT], id="all pods are the gang"),
        pytest.param(under_kai(), [LEAST_OF_IT, YOUNGEST], id="and the launcher goes first"),
        pytest.param(
            under_kai(first=FIRST, gang={"minAvailable": 3}), [], id="the least is the gang"
        ),
        pytest.param(under_kai(first=FIRST, gang={"minAvailable": 2}), [], id="less than that"),
        pytest.param(
            under_kai(first=FIRST, gang={"minAvailable": 4}),
            [LEAST_OF_IT],
            id="more than the least",
        ),
        pytest.param(
            under_kai(first=FIRST, gang={"queue": "team"}), [LEAST_OF_IT], id="no number given"
        ),
        pytest.param(under_kai(first=FIRST, gang=7), [LEAST_OF_IT], id="no object given"),
        pytest.param(
            under_kai(first=FIRST, gang={"minAvailable": True}), [LEAST_OF_IT], id="no number"
        ),
        pytest.param(under_kai(FOR_EVER, first=FIRST), [], id="KAI waits for ever"),
        pytest.param(
            under_kai(first=FIRST, replicas=2), [PATIENT], id="no worker above the least size"
        ),
        pytest.param(under_kai(first=FIRST, command=PLAIN), [], id="a plain job is a whole gang"),
        pytest.param(under_kai(roles=("Worker",), first=FIRST), [APART], id="the workers alone"),
        pytest.param(under_kai(roles=("Launcher",), first=FIRST), [APART], id="the launcher alone"),
        pytest.param(
            under_kai(roles=("Worker",), command=PLAIN), [APART], id="workers of a plain job alone"
        ),
        pytest.param(under_kai(roles=()), [], id="another scheduler"),
        pytest.param(
            under_kai(roles=(), gang={"minAvailable": 3}), [GROUPED], id="nobody reads the policy"
        ),
    ],
)
def test_a_job_under_kai_is_told_when_its_gang_is_evicted(job: Object, said: list[str]) -> None:
    decoded = mpijob.decode(json.dumps(job).encode())
    assert list(GangAdmission().findings(decoded, capabilities.of(decoded))) == said
    assert all(len(found) <= 120 for found in said)
