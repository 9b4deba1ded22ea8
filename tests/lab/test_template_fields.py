"""What mpi-operator v0.2.3 drops of pod templates is on the pods that it makes, on the real API server."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lab.cluster import Cluster
from lab.versions import DEFAULT_KUBERNETES
from mpijob_elastic import names
from mpijob_elastic.install.installer import InstallPlan
from mpijob_elastic.kube import resources
from mpijob_elastic.kube.writer import ApiWriter
from tests.lab.job import HOLD, Job, Object
from tests.lab.waiting import seen
from tests.product.admission.template_pods import holds
from upgrade import preflight

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("operator", "elastic")]
DOCS = Path(__file__).parents[2] / "docs" / "elastic-jobs.md"
# The minor release of Kubernetes that serves image volumes without a gate.
IMAGE_VOLUMES = 35
AWAY = "mpijob-elastic/injection=disabled"
MAIN: Object = {"name": "worker", "image": "horovod:test"}
PROBE: Object = {"exec": {"command": ["/ready"]}, "periodSeconds": 2, "failureThreshold": 60}
CLAIM: Object = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
STORAGE: Object = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}


def main(**fields: Any) -> Object:
    """A spec whose main container has more fields."""
    return {"containers": [{**MAIN, **fields}]}


# A row of the table in docs/elastic-jobs.md: its first words, and the spec of a template.
ROWS: dict[str, Object] = {
    "`startupProbe`": main(startupProbe=PROBE),
    "native sidecars": {
        "containers": [MAIN],
        "initContainers": [{"name": "log", "image": "log:test", "restartPolicy": "Always"}],
    },
    "`topologySpreadConstraints`": {
        "containers": [MAIN],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"mpi-job-role": "worker"}},
            }
        ],
    },
    "`resourceClaims`": {
        **main(resources={"claims": [{"name": "gpu"}]}),
        "resourceClaims": [CLAIM],
    },
    "`resources` of the pod": {
        "containers": [MAIN],
        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
    },
    "`hostUsers`": {"containers": [MAIN], "hostUsers": False},
    "volumes with `ephemeral`": {
        **main(volumeMounts=[{"name": "scratch", "mountPath": "/scratch"}]),
        "volumes": [
            {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": STORAGE}}},
            {"name": "other", "emptyDir": {}},
        ],
    },
    "volumes with `image`": {
        **main(volumeMounts=[{"name": "data", "mountPath": "/data"}]),
        "volumes": [{"name": "data", "image": {"reference": "data:test"}}],
    },
    "`resizePolicy`": main(
        resizePolicy=[{"resourceName": "cpu", "restartPolicy": "NotRequired"}],
        resources={"requests": {"cpu": "1"}},
    ),
    "`appArmorProfile`": {
        **main(securityContext={"appArmorProfile": {"type": "RuntimeDefault"}}),
        "securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}},
    },
    "`schedulingGates`": {
        "containers": [MAIN],
        "schedulingGates": [{"name": "example.com/quota"}],
    },
    "probes with `grpc`": main(
        livenessProbe={"grpc": {"port": 9000}, "terminationGracePeriodSeconds": 5}
    ),
    "`preStop` with `sleep`": main(lifecycle={"preStop": {"sleep": {"seconds": 3}}}),
    "`namespaceSelector`": {
        "containers": [MAIN],
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "kubernetes.io/hostname",
                            "namespaceSelector": {"matchLabels": {"team": "a"}},
                            "labelSelector": {"matchLabels": {"app": "web"}},
                            "matchLabelKeys": ["pod-template-hash"],
                        },
                    }
                ]
            }
        },
    },
    "`fsGroupChangePolicy`": {
        "containers": [MAIN],
        "securityContext": {
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "supplementalGroupsPolicy": "Strict",
        },
        "setHostnameAsFQDN": False,
        "os": {"name": "linux"},
    },
}


def served(row: str) -> bool:
    """Tell whether the API server of the lab serves the fields of a row without a gate."""
    return row != "volumes with `image`" or DEFAULT_KUBERNETES.minor >= IMAGE_VOLUMES


async def pod_of(client: ApiWriter, namespace: str, name: str) -> Object:
    async def found() -> Object:
        [*pods] = msgspec.json.decode(await client.get(resources.PODS.path(namespace)))["items"]
        return next((pod for pod in pods if pod["metadata"]["name"] == name), {})

    return await seen(found, bool, f"pod {name}")


async def test_each_row_of_the_table_is_on_the_workers(client: ApiWriter, namespace: str) -> None:
    """Templates that differ in one thing: jobs of that name."""
    for number, spec in enumerate(ROWS.values()):
        job = Job(client=client, namespace=namespace, name=f"row-{number}")
        await job.create(replicas=1, worker_spec=spec)
    missing = []
    for number, (row, spec) in enumerate(ROWS.items()):
        pod = await pod_of(client, namespace, f"row-{number}-worker-0")
        assert pod["metadata"]["annotations"][names.PUT_BACK] == "true", row
        if served(row) and not holds(pod["spec"], spec):
            missing.append((row, pod["spec"]))
    assert not missing


def test_the_docs_have_each_row() -> None:
    text = DOCS.read_text()
    table = re.findall(r"^\| (.*?) \|", text[text.index("## What the operator drops") :], re.M)
    assert [row for row in ROWS if not any(cell.startswith(row) for cell in table)] == []


async def test_a_worker_that_missed_what_isolates_it_is_made_again(
    cluster: Cluster, job: Job, namespace: str
) -> None:
    """The webhook is away while it is created."""
    cluster.kubectl("label", "namespace", namespace, AWAY)
    await job.create(
        replicas=2,
        annotations={names.PUT_BACK: "true"},
        worker_spec={"containers": [MAIN], "hostUsers": False},
        worker_annotations={HOLD: "true"},
        launcher_annotations={HOLD: "true"},
    )
    before = await job.until(lambda state: len(state.running) == 2, "its workers")
    assert "hostUsers" not in before.workers[f"{job.name}-worker-1"]["spec"]
    cluster.kubectl("label", "namespace", namespace, AWAY.partition("=")[0] + "-")
    await job.until(
        lambda state: (
            len(state.workers) == 2
            and all(pod["spec"].get("hostUsers") is False for pod in state.workers.values())
        ),
        "workers with the field",
    )


async def test_preflight_names_an_older_job_with_such_fields(
    cluster: Cluster, job: Job, namespace: str
) -> None:
    cluster.kubectl("label", "namespace", namespace, AWAY)
    await job.create(replicas=1, worker_spec={"containers": [MAIN], "hostUsers": False})
    plan = InstallPlan(jobs_namespaces=(namespace,))
    said = [
        one.text
        for one in (await preflight.look(job.client, plan, now=0.0)).findings
        if one.topic == "fields"
    ]
    assert said
    assert said[0].startswith(f"{namespace}/{job.name} has hostUsers: ")
