"""Configurations of other programs, as their installers keep them."""

import msgspec

from mpijob_elastic.kube.reader import ApiReader


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def text(client: ApiReader, path: str, key: str) -> str:
    """Return the text under a key of a ConfigMap, "" if it is not there. Raises errors.Forbidden."""
    raw = await client.find(path)
    return msgspec.json.decode(raw, type=_ConfigMap).data.get(key, "") if raw else ""
