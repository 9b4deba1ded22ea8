"""A Secret as files, which follow it as a kubelet's do: one symbolic link changes all of them at once."""

import base64
import contextlib
import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.cluster import Cluster
from lab.errors import LabError
from tests.peers.background import repeated

EVERY = 1.0  # seconds; a kubelet takes up to two minutes
_DATA = "..data"


@contextmanager
def mounted(
    cluster: Cluster, namespace: str, volume: Mapping[str, Any], directory: Path
) -> Iterator[None]:
    """Follow the Secret of a pod's volume as long as the block lasts; while there is none, the files stay."""

    def follow() -> None:
        with contextlib.suppress(LabError):
            write()

    def write() -> None:
        content = _content(cluster, namespace, volume["secret"])
        if {
            name: (directory / name).read_bytes() for name in content if (directory / name).exists()
        } != content:
            _replace(directory, content)

    write()
    with repeated(follow, every=EVERY):
        yield


def _content(cluster: Cluster, namespace: str, source: Mapping[str, Any]) -> dict[str, bytes]:
    data = json.loads(
        cluster.kubectl("get", "secret", "-n", namespace, source["secretName"], "-o", "json")
    )["data"]
    return {item["path"]: base64.b64decode(data[item["key"]]) for item in source["items"]}


def _replace(directory: Path, content: Mapping[str, bytes]) -> None:
    version = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for name, data in content.items():
        (version / name).write_bytes(data)
    link = version.with_name(f"{_DATA}_tmp")
    link.symlink_to(version.name)
    link.replace(directory / _DATA)
    for name in content:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"{_DATA}/{name}")
