"""Looks by exec: what probes of workers and looks into launchers share."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

from mpijob_elastic.kube import errors
from mpijob_elastic.kube.exec import LIMIT, ExecResult, exec_in_pod
from mpijob_elastic.kube.reader import ApiReader

log = logging.getLogger(__name__)


class Tasks:
    """Looks under way, a single look for each key at most; `begin` does not wait for their end."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._running

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, key: str, look: Coroutine[None, None, None], *, ended: Callable[[], None] | None = None) -> None:
        """Run `look`, and call `ended` afterwards, however it ended. The key must be free."""
        self._running[key] = task = asyncio.create_task(look)

        def end(_: object) -> None:
            self._running.pop(key, None)
            if ended:
                ended()

        task.add_done_callback(end)

    async def close(self) -> None:
        """Cancel every look, and wait until all have ended."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def look_into(
    client: ApiReader,
    namespace: str,
    pod: str,
    *,
    container: str,
    command: list[str],
    timeout: float,  # noqa: ASYNC109 - of exec_in_pod
    limit: int = LIMIT,
) -> ExecResult | None:
    """Run a command that changes nothing; return None if it could not be run."""
    try:
        return await exec_in_pod(
            client, namespace, pod, container=container, command=command, timeout=timeout, limit=limit
        )
    except errors.KubeError as error:
        log.debug("no look into %s/%s: %s", namespace, pod, error)
        return None
