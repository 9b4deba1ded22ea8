"""The version of an API server (https://kubernetes.io/docs/reference/using-api/)."""

import re

import msgspec

from mpijob_elastic.kube.reader import ApiReader


class _Version(msgspec.Struct, rename={"git": "gitVersion"}, kw_only=True):
    minor: str
    git: str


async def ask(client: ApiReader) -> tuple[str, int]:
    """Return the version, such as `v1.34.4`, and its minor number. Raises `errors.KubeError`, msgspec.DecodeError."""
    found = msgspec.json.decode(await client.get("/version"), type=_Version)
    # Some providers append a plus sign to the number.
    return found.git, int(re.sub(r"\D", "", found.minor) or 0)
