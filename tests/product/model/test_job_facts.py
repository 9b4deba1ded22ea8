"""The facts of an MPIJob: when it is over, above all."""

from typing import Any

import msgspec
import pytest

from mpijob_elastic import capabilities, names
from mpijob_elastic.capabilities.kueue.facts import MULTIKUEUE, PREBUILT, Asked
from mpijob_elastic.capabilities.run_policy import RUN_POLICY
from mpijob_elastic.decide import derive
from mpijob_elastic.model import job_facts
from mpijob_elastic.model.job import JobView
from mpijob_elastic.model.json_parts import is_news
from mpijob_elastic.names import SUSPEND


def job(**parts: Any) -> job_facts.JobFacts:
    """The facts of a job with these parts."""
    return capabilities.read(
        msgspec.json.encode({"metadata": {"name": "j", "namespace": "n"}, **parts})
    )


def annotated(annotations: dict[str, str], **parts: Any) -> job_facts.JobFacts:
    return job(metadata={"name": "j", "namespace": "n", "annotations": annotations}, **parts)


def launched(*containers: object, slots: int = 1, workers: Any = None) -> job_facts.JobFacts:
    """A job whose launcher has these containers."""
    replicas = {
        "Launcher": {"template": {"spec": {"containers": [*containers]}}},
        "Worker": workers,
    }
    return job(spec={"slotsPerWorker": slots, "mpiReplicaSpecs": replicas})


SUCCEEDED, FAILED = ("Succeeded", "True", "MPIJobSucceeded"), ("Failed", "True", "MPIJobFailed")


@pytest.mark.parametrize(
    ("condition", "completed", "finished", "succeeded_at", "ended_at"),
    [
        (("Running", "True", "MPIJobRunning"), None, False, None, None),
        (("Running", "True", "MPIJobRunning"), 9.0, False, None, None),
        (SUCCEEDED, 9.0, True, 9.0, 9.0),
        (SUCCEEDED, None, True, None, None),
        (("Succeeded", "False", ""), None, False, None, None),
        (FAILED, 9.0, True, None, 9.0),
        (FAILED, None, False, None, None),
        (("Failed", "True", "MPIJobEvicted"), 9.0, False, None, None),
    ],
)
def test_when_a_job_is_over(
    condition: tuple[str, str, str],
    completed: float | None,
    finished: bool,
    succeeded_at: object,
    ended_at: object,
) -> None:
    said = dict(zip(("type", "status", "reason"), condition, strict=True))
    time = {"completionTime": "1970-01-01T00:00:09Z"} if completed else {}
    found = job(status={"conditions": [said], **time})
    assert (found.finished, found.succeeded_at, found.ended_at) == (
        finished,
        succeeded_at,
        ended_at,
    )


@pytest.mark.parametrize(
    ("value", "gates"), [(MULTIKUEUE, (names.GATE_QUEUED,)), ("x", ()), (1, ()), (None, ())]
)
def test_pods_of_a_job_that_another_cluster_runs_wait(
    value: object, gates: tuple[str, ...]
) -> None:
    assert job(spec={"managedBy": value}).gates == gates


def test_a_copy_of_multikueue_names_its_workload() -> None:
    for where in ("annotations", "labels"):
        assert job(metadata={where: {PREBUILT: "j-launcher"}}).of(Asked).prebuilt == "j-launcher"
    assert job().of(Asked) is None


@pytest.mark.parametrize(
    ("annotations", "spec", "by"),
    [
        ({}, {}, ""),
        ({SUSPEND: "true"}, {}, "annotation mpijob-elastic/suspend"),
        ({}, {"runPolicy": {"suspend": True}}, ""),
        ({RUN_POLICY: "true"}, {"runPolicy": {"suspend": True}}, "spec.runPolicy.suspend"),
        ({RUN_POLICY: "true"}, {"runPolicy": {"suspend": None}}, ""),
    ],
)
def test_what_suspends_an_elastic_job(
    annotations: dict[str, str], spec: dict[str, Any], by: str
) -> None:
    for enabled in ("true", "false"):
        found = annotated({**annotations, names.ENABLED: enabled}, spec=spec)
        assert found.suspended is (by != "" and enabled == "true")
        assert found.gates == ((names.GATE_SUSPENDED,) if found.suspended else ())
        stop = derive(
            capabilities.told(JobView(facts=found, replicas=0)), now=0.0
        ).wishes.suspended_by
        assert stop == (by if enabled == "true" else "")
        assert found.problems == ()


def test_what_is_missing_has_the_operators_default() -> None:
    bare = job()
    assert (bare.replicas, bare.slots, bare.clean_pod_policy, bare.elastic) == (0, 1, "None", False)
    assert bare.size_known
    assert not job(spec={"mpiReplicaSpecs": {"Worker": {}}}).size_known


@pytest.mark.parametrize(
    ("statuses", "lacks"),
    [
        ({}, False),
        ({"Launcher": {"active": 1}}, False),
        ({"Worker": {}}, True),
        ({"Worker": {"active": 2, "selector": ""}}, True),
        ({"Worker": {"active": 2, "selector": "a=b"}}, False),
    ],
)
def test_when_a_status_lacks_the_selector(statuses: dict[str, Any] | None, lacks: bool) -> None:
    assert job(status={"replicaStatuses": statuses}).lacks_selector is lacks


def test_what_cannot_be_read_is_refused_as_a_whole() -> None:
    with pytest.raises(msgspec.DecodeError):
        job(spec={"mpiReplicaSpecs": {"Worker": {"replicas": "three"}}})


@pytest.mark.parametrize(
    ("command", "slots", "workers"),
    [
        ("horovodrun -np 4 --min-np 3 python", 2, (2, 2, 0)),
        ("horovodrun -np 5 --min-np 1 python", 2, (3, 1, 0)),
        ("horovodrun -np 4 python", 1, (4, 4, 0)),
        ("horovodrun --host-discovery-script x python", 1, (0, 0, 0)),
        ("mpirun -np 4 python", 1, (0, 0, 0)),
        ("", 1, (0, 0, 0)),
        ("horovodrun -np 2 --max-np 5 python", 2, (1, 1, 3)),
    ],
)
def test_how_many_workers_horovodrun_needs_and_starts_ranks_on(
    command: str, slots: int, workers: tuple[int, int, int]
) -> None:
    found = launched({"command": command.split()}, slots=slots)
    assert (found.np_workers, found.min_np_workers, found.max_np_workers) == workers


ALL = {"np", "min_np", "max_np"}


@pytest.mark.parametrize(
    ("command", "unread"),
    [
        ("horovodrun -np 2 --min-np 1 --max-np 4 --host-discovery-script s x", set()),
        ("horovodrun -np 2 --host-discovery-script s x", set()),
        ("horovodrun -np $N --host-discovery-script s x", {"np", "min_np"}),
        ("horovodrun -np $N --min-np 1 --host-discovery-script s x", {"np"}),
        ("horovodrun -np 2 --max-np $N --host-discovery-script s x", {"max_np"}),
        ("horovodrun -np 2 $OPTIONS --host-discovery-script s x", {"min_np", "max_np"}),
        ("/start.sh /etc/mpi/discover_hosts.sh", ALL),
        ("mpirun -np 2 x /etc/mpi/discover_hosts.sh", set()),
        # A job that keeps its size has no need of them.
        ("horovodrun -np $N x", set()),
        ("/start.sh", set()),
    ],
)
def test_which_limits_of_an_elastic_job_nobody_knows(command: str, unread: set[str]) -> None:
    assert launched({"command": command.split()}).unread_options == unread


def test_the_limits_may_be_variables_of_the_container() -> None:
    command = ["horovodrun", "-np", "$(NP)", "--max-np", "$(MAX)", "--host-discovery-script", "s"]
    env = [{"name": "NP", "value": "2"}, {"name": "MAX", "valueFrom": {}}]
    found = launched({"command": command, "args": ["x"], "env": env})
    assert (found.np_workers, found.max_np_workers, found.unread_options) == (
        2,
        0,
        frozenset({"max_np"}),
    )


@pytest.mark.parametrize(
    ("command", "env", "workers"),
    [
        ("horovodrun -np 1 --host-discovery-script s x", "", 2),
        ("horovodrun -np 3 --host-discovery-script s x", "", 3),
        ("horovodrun -np $N --host-discovery-script s x", "", None),
        ("/start.sh /etc/mpi/discover_hosts.sh", "", None),
        ("horovodrun -np 1 --host-discovery-script s x", "/etc/mpi/hostfile", None),
    ],
)
def test_how_many_workers_a_launcher_waits_for(command: str, env: str, workers: int | None) -> None:
    container = {"command": command.split(), "env": [{"name": "A", "value": env}]}
    replicas = {"Launcher": {"template": {"spec": {"containers": [container]}}}}
    found = annotated({names.MIN_REPLICAS: "2"}, spec={"mpiReplicaSpecs": replicas})
    assert found.startup_workers == workers


OPTION = ["horovodrun", "--gloo-timeout-seconds", "15", "-np", "2", "python"]
PLAIN = ["horovodrun", "-np", "2", "python"]


def says(value: str | None) -> dict[str, object]:
    """A container's environment with the timeout, after a variable that comes from elsewhere."""
    elsewhere = {"name": "OTHER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return {
        "env": [
            elsewhere,
            *([{"name": "HOROVOD_GLOO_TIMEOUT_SECONDS", "value": value}] if value else []),
        ]
    }


@pytest.mark.parametrize(
    ("command", "launcher", "worker", "timeout"),
    [
        (OPTION, None, None, 15),
        (OPTION, "20", "25", 15),  # horovodrun puts it into the environment of every rank
        (PLAIN, "20", "25", 20),
        (PLAIN, None, "25", 25),
        (PLAIN, None, None, 0),
        (PLAIN, "$(SECONDS)", "25", 0),
        (["horovodrun", "--gloo-timeout-seconds", "$N", "python"], "20", None, 20),
        (["/train.sh"], "20", None, 20),
    ],
)
def test_when_gloo_gives_up_a_peer(
    command: list[str], launcher: str | None, worker: str | None, timeout: int
) -> None:
    workers = {"template": {"spec": {"containers": [says(worker)]}}}
    assert launched({"command": command, **says(launcher)}, workers=workers).gloo_timeout == timeout


def at_version(version: str, *, active: int = 0, replicas: int = 3) -> job_facts.JobFacts:
    status = {"replicaStatuses": {"Worker": {"active": active, "selector": "s"}}}
    spec = {"mpiReplicaSpecs": {"Worker": {"replicas": replicas}}}
    return job(
        metadata={"name": "j", "namespace": "n", "resourceVersion": version},
        spec=spec,
        status=status,
    )


def test_a_status_that_only_counts_pods_is_no_news() -> None:
    assert not is_news(at_version("1"), at_version("2", active=3))
    assert is_news(at_version("1"), at_version("2", replicas=4))
    assert is_news(None, at_version("1"))
    assert is_news(at_version("1"), None)


BARE: dict[str, Any] = {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {}}}
NO_SPEC = dict.fromkeys(("mpiReplicaSpecs", "slotsPerWorker", "cleanPodPolicy", "mainContainer"))
NO_STATUS = dict.fromkeys(("conditions", "replicaStatuses", "startTime", "completionTime"))
NO_CONDITION = dict.fromkeys(("type", "status", "reason"))


@pytest.mark.parametrize(
    ("raw", "like"),
    [
        ({"spec": None, "status": None}, {}),
        ({"spec": NO_SPEC, "status": NO_STATUS}, {}),
        ({"status": {"replicaStatuses": {"Worker": None}}}, {}),
        ({"spec": {"mpiReplicaSpecs": {"Launcher": None, "Worker": None}}}, {}),
        (
            {
                "spec": {
                    "mpiReplicaSpecs": {
                        "Launcher": {"template": None},
                        "Worker": {"replicas": None},
                    }
                }
            },
            BARE,
        ),
        (
            {"spec": {"mpiReplicaSpecs": {"Launcher": {"template": {"spec": None}}, "Worker": {}}}},
            BARE,
        ),
    ],
)
def test_null_is_as_good_as_nothing(raw: dict[str, Any], like: dict[str, Any]) -> None:
    """The operator writes `status.conditions: null`, and the definition lets users write null for most fields."""
    assert job(**raw) == job(spec=like)
    facts = job(status={"conditions": [None, NO_CONDITION]})
    assert (facts.finished, facts.succeeded_at) == (False, None)


@pytest.mark.parametrize(
    "containers",
    [
        (),
        (None,),
        ({"name": None, "command": None, "args": None, "env": None},),
        ({"command": [None], "args": [None], "env": [None, {"name": "A", "value": None}]},),
    ],
)
def test_a_launcher_of_nulls_starts_nothing(containers: tuple[Any, ...]) -> None:
    facts = launched(*containers)
    assert (facts.launch, facts.elastic) == (None, False)


def test_ranks_are_started_by_the_first_container_but_any_may_read_the_host_list() -> None:
    """[operator] Only the first container of a launcher gets kubectl and the hostfile."""
    first, other = (
        ["horovodrun", "-np", "2", "train"],
        ["horovodrun", "-np", "8", "--host-discovery-script", "x", "y"],
    )
    facts = launched({"command": first}, {"command": other})
    assert (facts.np_workers, facts.elastic) == (2, True)
    assert launched({"command": ["proxy"]}, {"command": other}).np_workers == 0


@pytest.mark.parametrize("slots", [None, 0, -1, 1])
def test_a_worker_has_at_least_one_slot(slots: int | None) -> None:
    assert job(spec={"slotsPerWorker": slots}).slots == 1


def test_times_are_seconds_and_unreadable_times_are_none() -> None:
    done = [{"type": "Succeeded", "status": "True"}]
    assert job(metadata={"creationTimestamp": "1970-01-01T00:00:07Z"}).created_at == 7.0
    assert job(status={"conditions": done, "completionTime": "soon"}).ended_at is None


@pytest.mark.parametrize(
    ("annotations", "texts", "elastic"),
    [
        ({}, ["horovodrun", "--host-discovery-script", "/x"], True),
        ({}, ["sh", "-c", "run --hosts-from /etc/mpi/discover_hosts.sh"], True),
        ({}, ["mpirun", "-np", "2"], False),
        ({names.ENABLED: "true"}, ["mpirun"], True),
        ({names.ENABLED: "false"}, ["horovodrun", "--host-discovery-script"], False),
    ],
)
def test_a_job_is_elastic_where_it_says_so_or_its_launcher_discovers_hosts(
    annotations: dict[str, str], texts: list[str], elastic: bool
) -> None:
    launcher = {"template": {"spec": {"containers": [{"command": texts}]}}}
    assert (
        annotated(annotations, spec={"mpiReplicaSpecs": {"Launcher": launcher}}).elastic is elastic
    )
