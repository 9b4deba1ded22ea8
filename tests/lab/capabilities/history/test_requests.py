"""The requests of the controller for each of four edits: which, how many, and in which order."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from lab.cluster import Cluster
from mpijob_elastic.capabilities.history import QUIET
from mpijob_elastic.controller.process import Controller
from mpijob_elastic.kube.client import connect
from tests.lab.controllers import settings_for
from tests.lab.job import Job

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("webhook", "operator")]

LIST, TOUCH, ROLE = "PATCH configmaps", "PATCH pods", "PATCH roles"
READ = ["GET configmaps", "GET mpijobs", "GET pods"]


@dataclass
class Requests:
    """What a controller asked the API server for, in this order; watches and execs are left out."""

    sent: list[str]

    def take(self) -> list[str]:
        """Return the requests since the last call."""
        taken, self.sent[:] = [*self.sent], []
        return taken


@asynccontextmanager
async def recorded(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Requests]:
    """Run a controller for one namespace; give its requests for objects of that namespace."""
    found = Requests([])
    async with await connect(
        user_agent="mpijob-elastic-test", kubeconfig=cluster.kubeconfig
    ) as client:
        send = client._call_api

        async def record(method: str, path: str, **options: Any) -> bytes:
            before, _, rest = path.partition(f"/namespaces/{namespace}/")
            kind = "/".join(rest.split("/")[::2])
            if before != path and kind not in ("leases", "events"):
                found.sent.append(f"{method} {kind}")
            return await send(method, path, **options)

        monkeypatch.setattr(client, "_call_api", record)
        stop = asyncio.Event()
        running = asyncio.create_task(Controller(client, settings_for(namespace)).run(stop))
        try:
            yield found
        finally:
            stop.set()
            await running


def writes(sent: Sequence[str]) -> list[str]:
    """Return the writes that an edit takes, without those of our annotations on the MPIJob.

    They follow some seconds after the last event, so they belong to a slow machine.
    """
    return [one for one in sent if not one.startswith(("GET ", "PATCH mpijobs"))]


def check(before: int, size: int, sent: Sequence[str]) -> None:
    """Check the requests of an edit from one size to another."""
    # Nothing is read before the list: what is read later is for the deletions and the looks.
    assert not [one for one in sent[: sent.index(LIST)] if one.startswith("GET ")]
    if size < before:
        gone = ["DELETE pods"] * (before - size)
        assert writes(sent) == [LIST, TOUCH, *gone]
        assert sent[0] == LIST
        assert sorted(sent[1:5]) == sorted([TOUCH, *READ])
        # Deletions are decided again from what is read live: beside the touch, again if that took
        # long, and then every 0.1 s.
        assert 1 <= sent.count("GET configmaps") == sent.count("GET mpijobs") <= len(gone)
        return
    assert "GET configmaps" not in sent
    role, rest = ([ROLE], writes(sent)[1:]) if size > 3 else ([], writes(sent))
    assert writes(sent)[: len(role)] == role
    # Workers that get Ready more than two seconds after one another join one after the other.
    assert rest == [LIST, TOUCH] * (len(rest) // 2)
    assert 1 <= len(rest) // 2 <= size - before


@pytest.mark.thorough
async def test_the_list_is_the_first_request_after_an_edit_and_is_written_once(
    job: Job, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is read before it: not by the history either, which is written with it."""
    async with recorded(cluster, job.namespace, monkeypatch) as requests:
        await job.create(replicas=3, annotations={"mpijob-elastic/drain-timeout": "0s"})
        await job.settled(3)
        await asyncio.sleep(QUIET)
        await job.at_rest()
        requests.take()
        for before, size in ((3, 1), (1, 12), (12, 2), (2, 3)):
            await job.scale(size)
            await job.settled(size)
            await asyncio.sleep(QUIET)
            await job.at_rest()
            check(before, size, requests.take())
