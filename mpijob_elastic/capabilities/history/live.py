"""The history annotation: read only when a change is written, and written in the same request."""

from collections.abc import Mapping

import msgspec

from mpijob_elastic import names
from mpijob_elastic.act.own import Own
from mpijob_elastic.capabilities.history import changes
from mpijob_elastic.decide.actions import WriteConfig
from mpijob_elastic.kube.reader import ApiReader
from mpijob_elastic.kube.resources import CONFIG_MAPS
from mpijob_elastic.model import history
from mpijob_elastic.model.job import JobView


class Histories(Own):
    """Merges the record of the memory into the history annotation."""

    def __init__(self, client: ApiReader) -> None:
        self._client = client

    async def beside(self, view: JobView, action: WriteConfig) -> Mapping[str, str]:
        """Return the history annotation, with the changes that are written."""
        before, after = (memory.own.get(changes.NAME) for memory in (view.memory, action.memory))
        record = changes.remembered(after)
        if record is None or before == after:
            return {}
        live = msgspec.json.decode(
            await self._client.get(CONFIG_MAPS.path(view.namespace, action.ref.name))
        )
        text = (live["metadata"].get("annotations") or {}).get(names.HISTORY, "")
        return {names.HISTORY: history.merged(text, record.changes)}
