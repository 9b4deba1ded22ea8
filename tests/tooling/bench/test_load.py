"""The load asks a webhook over TLS, and tells right answers from wrong ones."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestServer

from bench import load
from bench.admission import review_of
from lab.operator import objects
from mpijob_elastic.kube.resources import MPI_JOBS
from tests.product.webhook.certificates.material import healthy
from webhook.admission import Admission
from webhook.certificates.serving import Serving
from webhook.metrics import Metrics
from webhook.settings import Limits

ELASTIC = ["horovodrun", "--host-discovery-script", "/etc/mpi/discover_hosts.sh", "train"]
JOB: dict[str, Any] = {
    "metadata": {"name": "train", "namespace": "n", "uid": "u", "resourceVersion": "1"},
    "spec": {
        "mpiReplicaSpecs": {
            "Launcher": {"template": {"spec": {"containers": [{"name": "main", "image": "i", "command": ELASTIC}]}}},
            "Worker": {"replicas": 2, "template": {"spec": {"containers": [{"name": "main", "image": "i"}]}}},
        }
    },
}


def review() -> bytes:
    """About the launcher that the operator would create."""
    pod = objects.launcher(JOB)
    pod["metadata"]["uid"] = "11"
    assert pod["metadata"]["ownerReferences"][0]["kind"] == MPI_JOBS.kind
    return review_of(msgspec.json.encode(pod), "n")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A webhook's, that answers over TLS."""
    serving, certificates = Serving(), healthy()
    assert certificates.leaf is not None
    serving.load(certificates.leaf.certificate_pem, certificates.leaf.key_pem)
    admission = Admission(limits=Limits(), metrics=Metrics(), draining=asyncio.Event())
    server = TestServer(admission.application(), scheme="https", host=load.HOST)
    await server.start_server(ssl=serving.context)
    assert server.port is not None
    yield server.port
    await server.close()


async def test_every_review_is_answered_with_a_patch(port: int) -> None:
    found = await load.run(port, connections=3, seconds=0.2, body=review(), expected=b"JSONPatch")
    assert len(found.took) >= 3
    assert found.wrong == 0


@pytest.mark.parametrize(
    ("body", "expected"), [(review(), b"no such text"), (b"{}", b"")], ids=["another answer", "another status"]
)
async def test_wrong_answers_are_counted(port: int, body: bytes, expected: bytes) -> None:
    found = await load.run(port, connections=1, seconds=0.05, body=body, expected=expected)
    assert found.wrong == len(found.took) > 0
