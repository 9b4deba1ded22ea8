"""Read now and then from the MPIJob definition if it keeps the selector of the subresource scale."""

import asyncio
import logging
from typing import Never

import msgspec

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS
from mpijob_elastic.observe import definition
from mpijob_elastic.observe.caches import Caches

log = logging.getLogger(__name__)

# Seconds between two reads: a definition changes with an upgrade, and a minute is soon enough then.
EVERY = 60.0
_PATH = CUSTOM_RESOURCE_DEFINITIONS.path(name=f"{MPI_JOBS.plural}.{MPI_JOBS.group}")


async def follow(client: ApiReader, caches: Caches) -> Never:
    """Read at once and then every minute, until cancelled; a failed read changes nothing."""
    while True:
        try:
            raw = await client.get(_PATH)
            caches.see_definition(keeps_selector=definition.keeps_selector(raw))
        except (errors.KubeError, msgspec.DecodeError) as error:
            log.warning("the MPIJob definition cannot be read, so selectors are left to the webhook: %s", error)
        await asyncio.sleep(EVERY)
