"""Namespaces that are closed to us: a namespace that is deleted takes our Role along.

A watch of such a namespace never lists. It must not keep the jobs of all others waiting when a controller starts.
"""

import asyncio
from collections.abc import Sequence

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import MPI_JOBS

# Seconds between two questions.
ASK_EVERY = 60.0


async def closed(client: ApiReader, namespaces: Sequence[str]) -> list[str]:
    """Return the namespaces in which we may not list jobs."""
    found = []
    for namespace in namespaces:
        try:
            await client.get(MPI_JOBS.path(namespace), query={"limit": "1"})
        except errors.Forbidden:
            found.append(namespace)
        except errors.KubeError:
            break  # whatever else is wrong, the watches wait until it has passed
    return found


async def end_once_open(
    client: ApiReader, namespaces: Sequence[str], stop: asyncio.Event, *, every: float = ASK_EVERY
) -> None:
    """Set `stop` once one of these namespaces is open: a new process watches it from its start."""
    while True:
        await asyncio.sleep(every)
        if len(await closed(client, namespaces)) < len(namespaces):
            stop.set()
