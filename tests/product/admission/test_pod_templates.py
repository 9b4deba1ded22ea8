"""What new pods get beside the host list: gates, labels, profiles."""

import copy
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from lab.operator import objects
from mpijob_elastic import names
from mpijob_elastic.admission import mutate, pod_templates, review
from mpijob_elastic.capabilities import admission
from mpijob_elastic.capabilities.kueue.facts import LABEL_QUEUE
from mpijob_elastic.names import SUSPEND
from tests.product.webhook.answers import knowing, patched, verdict
from tests.product.webhook.objects import (
    ELASTIC,
    PLAIN,
    Object,
    body,
    launcher_pod,
    mpi_job,
    worker_pod,
)
from webhook.rules import handlers

SUSPENDED = {"name": names.GATE_SUSPENDED}
THEIRS = {"name": "kueue.x-k8s.io/admission"}
ASKING = {SUSPEND: "true"}
# Ranks of the last launcher may run. The controller takes the notice away once there is a launcher.
RESUMED = {names.STATUS: "Queued: x\nSuspended: j is suspended"}


def with_spec(pod: Object, **fields: Any) -> Object:
    return {**pod, "spec": {**pod["spec"], **fields}}


GATED, PLACED = (
    with_spec(worker_pod(), schedulingGates=[THEIRS]),
    with_spec(worker_pod(), nodeName="gpu-1"),
)
PLAINLY, SUSPENDING = mpi_job(), mpi_job(annotations=ASKING)


@pytest.mark.parametrize(
    ("pod", "job", "gates"),
    [
        pytest.param(worker_pod(), SUSPENDING, [SUSPENDED], id="a worker of a suspended job"),
        pytest.param(launcher_pod(), SUSPENDING, [SUSPENDED], id="its launcher"),
        pytest.param(GATED, SUSPENDING, [THEIRS, SUSPENDED], id="beside the gates of others"),
        pytest.param(
            launcher_pod(),
            mpi_job(annotations=RESUMED),
            [SUSPENDED],
            id="resumed, but no new launcher yet",
        ),
        pytest.param(
            launcher_pod(),
            mpi_job(annotations=RESUMED, command=PLAIN),
            [SUSPENDED],
            id="edited to a plain job meanwhile: ranks of the last launcher may run",
        ),
        pytest.param(worker_pod(), PLAINLY, None, id="not suspended"),
        pytest.param(
            worker_pod(), mpi_job(annotations=ASKING, command=PLAIN), None, id="not elastic"
        ),
        # The API server would refuse it.
        pytest.param(PLACED, SUSPENDING, None, id="its node is chosen"),
    ],
)
def test_a_new_pod_gets_the_gates_of_its_job_only(
    pod: Object, job: Object, gates: list[Object] | None
) -> None:
    expected = pod if gates is None else with_spec(pod, schedulingGates=gates)
    assert patched(mutate.gates, pod, job) == expected


LABELS = {"team": "vision", "sidecar.istio.io/inject": "false"}
OFF = {names.ENABLED: "false"}


def labelled(labels: Any, *, role: str = "Worker", **job: Any) -> Object:
    """A job with these labels in a template."""
    made = mpi_job(**job)
    made["spec"]["mpiReplicaSpecs"][role]["template"]["metadata"] = {"labels": labels}
    return made


@pytest.mark.parametrize(
    ("pod", "job", "added"),
    [
        pytest.param(worker_pod(), labelled(LABELS), LABELS, id="a worker"),
        pytest.param(launcher_pod(), labelled(LABELS, role="Launcher"), LABELS, id="a launcher"),
        pytest.param(
            worker_pod(),
            labelled(LABELS, role="Launcher"),
            {},
            id="not those of the launcher's template",
        ),
        pytest.param(launcher_pod(), labelled(LABELS), {}, id="not those of the workers' template"),
        pytest.param(worker_pod(), labelled(LABELS, command=PLAIN), LABELS, id="elastic or not"),
        pytest.param(
            worker_pod(),
            labelled(LABELS, annotations=OFF),
            {},
            id="unless the job says that it is not",
        ),
        pytest.param(worker_pod(), labelled(None), {}, id="no labels"),
    ],
)
def test_a_pod_gets_the_labels_of_its_template_only(
    pod: Object, job: Object, added: dict[str, str]
) -> None:
    metadata = {**pod["metadata"], "labels": pod["metadata"]["labels"] | added}
    assert patched(pod_templates.missing_labels, pod, job) == {**pod, "metadata": metadata}


NEWER = "training.kubeflow.org/replica-type"
# The API server would refuse the pod with any of these.
MALFORMED = (
    "",
    "a b",
    "a/b/c",
    "/a",
    "Upper.Case/a",
    "a" * 64,
    f"{'a.' * 127}b/c",
    "a~b",
    "team\n",
)


@pytest.mark.parametrize(
    "key", ["mpi-job-name", NEWER, "replica-index", LABEL_QUEUE, names.ENABLED, *MALFORMED]
)
def test_what_others_read_as_their_own_and_what_is_no_label_is_left_out(key: str) -> None:
    rule = partial(pod_templates.missing_labels, taken=admission.TAKEN)
    assert patched(rule, worker_pod(), labelled({key: "x"})) == worker_pod()


@pytest.mark.parametrize("value", ["x y", "x" * 64, "-x", "x\n"])
def test_a_label_with_no_value_that_may_be_is_left_out(value: str) -> None:
    assert (
        patched(pod_templates.missing_labels, worker_pod(), labelled({"team": value}))
        == worker_pod()
    )


@pytest.mark.parametrize(
    ("key", "value"), [("a", ""), ("a.b-c/D_e.f", "x" * 63), ("a" * 63, "1"), ("team", None)]
)
def test_any_other_label_is_copied(key: str, value: str | None) -> None:
    changed = patched(pod_templates.missing_labels, worker_pod(), labelled({key: value}))
    assert changed["metadata"]["labels"][key] == (value or "")


APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"team": "vision"}}, "topologyKey": "node"}
        ]
    }
}
RULE = "Worker.template: the required anti-affinity to team=vision (by node) begins to match"


def apart(labels: Any = LABELS, affinity: Any = APART, **facts: Any) -> Object:
    """A job whose workers' template wants a node for each pod with a label."""
    made = labelled(labels, **facts)
    made["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"] = affinity
    return made


def raw(job: Object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(job))


@pytest.mark.parametrize(
    ("after", "before", "is_told"),
    [
        pytest.param(apart(), None, True, id="a new job"),
        pytest.param(apart(), apart(), False, id="an edit of something else"),
        pytest.param(apart(), apart({}), True, id="an edit adds the label"),
        pytest.param(apart(), labelled(LABELS), True, id="an edit adds the rule"),
        pytest.param(apart(), apart(affinity="none"), False, id="the former rule is not readable"),
        pytest.param(apart({}), None, False, id="without the label"),
        pytest.param(apart(annotations=OFF), None, False, id="a job that is left alone"),
        pytest.param(apart(affinity="none"), None, False, id="a rule that is not readable"),
    ],
)
def test_a_rule_that_begins_to_match_the_jobs_own_pods_is_told(
    after: Object, before: Object | None, *, is_told: bool
) -> None:
    told = pod_templates.new_rules(raw(after), raw(before) if before else None)
    assert [one.startswith(RULE) for one in told] == ([True] if is_told else [])


def test_a_few_rules_are_enough() -> None:
    terms = [
        {"labelSelector": {"matchLabels": {"team": "vision"}}, "topologyKey": str(index)}
        for index in range(99)
    ]
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    assert len(pod_templates.new_rules(raw(apart(affinity=rules)), None)) == review.MOST


@pytest.mark.parametrize("restores", [True, False])
def test_an_installation_may_leave_labels_as_they_are_and_then_warns_of_no_rule(
    *, restores: bool
) -> None:
    context = replace(knowing(apart()), restores_labels=restores)
    created = review.parse(body(worker_pod()))
    patch = handlers.answer(created, handlers.mutating(context)).verdict.patch
    assert ("/metadata/labels/team" in {one["path"] for one in patch}) is restores
    said = verdict(apart(), context=context).warnings
    assert [len(one) <= review.LONGEST_WARNING for one in said if RULE in one] == [True] * restores


DEFAULT = {"type": "RuntimeDefault"}
OWN = {"type": "Localhost", "localhostProfile": "ours.json"}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {"runAsNonRoot": True, "seccompProfile": DEFAULT}
AS_THE_POD = {**CONTAINER, **POD}
DELIVERY = {**AS_THE_POD, "runAsUser": 65534}


def made(
    pod: Object | None, container: Object | None, *, role: str = "Worker", **facts: Any
) -> tuple[Any, Any]:
    """A job with these security contexts, and the pod of that role that the operator and the API server make of it."""
    job = mpi_job(**facts)
    spec = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
    spec |= {"securityContext": pod} if pod is not None else {}
    spec["containers"][0] |= {"securityContext": container} if container is not None else {}
    created = copy.deepcopy(objects.launcher(job) if role == "Launcher" else objects.worker(job, 0))
    created["spec"]["securityContext"] = dropped(pod or {})
    if container is not None:
        created["spec"]["containers"][0]["securityContext"] = dropped(container)
    return job, created


def dropped(context: Object) -> Object:
    return {field: value for field, value in context.items() if field != "seccompProfile"}


def contexts(job: Object, pod: Object) -> list[Object | None]:
    """The security contexts of the patched pod, its containers and its init containers."""
    spec = patched(pod_templates.restored_security, pod, job)["spec"]
    places = (spec, *spec["containers"], *spec.get("initContainers", ()))
    return [place.get("securityContext") for place in places]


@pytest.mark.parametrize("command", [ELASTIC, PLAIN])
def test_a_pod_gets_the_profiles_of_its_template(command: list[str]) -> None:
    wanted = {"runAsUser": 7, "seccompProfile": DEFAULT}, {"seccompProfile": OWN}
    assert contexts(*made(*wanted, command=command)) == [*wanted]
    assert contexts(*made(POD, CONTAINER, command=command)) == [POD, CONTAINER]


def test_a_container_without_a_context_gets_one_and_others_are_left() -> None:
    job, pod = made(None, {"seccompProfile": OWN})
    del pod["spec"]["containers"][0]["securityContext"]
    pod["spec"]["containers"].append({"name": "injected"})
    assert contexts(job, pod) == [{}, {"seccompProfile": OWN}, None]


def test_a_profile_that_the_pod_has_stays() -> None:
    job, pod = made({"seccompProfile": DEFAULT}, None)
    pod["spec"]["securityContext"] = {"seccompProfile": OWN}
    assert patched(pod_templates.restored_security, pod, job) == pod


@pytest.mark.parametrize(
    ("pod", "container", "delivery"),
    [
        pytest.param(POD, CONTAINER, DELIVERY, id="restricted"),
        pytest.param(
            {"runAsUser": 0},
            {**POD, **CONTAINER, "runAsUser": 7},
            DELIVERY,
            id="root but for the container",
        ),
        pytest.param(
            POD,
            CONTAINER | {"capabilities": {"add": ["X"], "drop": ["ALL"]}},
            DELIVERY,
            id="a capability",
        ),
        pytest.param(
            {**POD, "seccompProfile": OWN}, CONTAINER, DELIVERY, id="a profile of its own"
        ),
        pytest.param({**POD, "runAsUser": 7}, CONTAINER, AS_THE_POD, id="the user of the pod"),
        pytest.param(None, None, None, id="nothing said"),
        pytest.param({"runAsNonRoot": True}, CONTAINER, None, id="no profile"),
        pytest.param({"seccompProfile": DEFAULT}, CONTAINER, None, id="perhaps root"),
        pytest.param(
            {**POD, "seccompProfile": {"type": "Unconfined"}}, CONTAINER, None, id="unconfined"
        ),
        pytest.param(POD, {**CONTAINER, "runAsNonRoot": False}, None, id="root in the container"),
        pytest.param(POD, {**CONTAINER, "allowPrivilegeEscalation": True}, None, id="escalation"),
        pytest.param(
            POD,
            {**CONTAINER, "capabilities": {"drop": ["NET_RAW"]}},
            None,
            id="few capabilities dropped",
        ),
        pytest.param(POD, None, None, id="no context in the container"),
    ],
)
def test_kubectl_delivery_is_restricted_beside_a_restricted_launcher_only(
    pod: Object | None, container: Object | None, delivery: Object | None
) -> None:
    assert contexts(*made(pod, container, role="Launcher")) == [pod or {}, container, delivery]


def test_a_sidecar_that_is_not_restricted_leaves_kubectl_delivery_as_it_is() -> None:
    job, created = made(POD, CONTAINER, role="Launcher")
    created["spec"]["containers"].append({"name": "injected"})
    assert contexts(job, created) == [POD, CONTAINER, None, None]
