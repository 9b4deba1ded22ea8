"""What a launcher runs: the sizes that horovodrun was given, and paths that are elsewhere now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model import policy
from upgrade.conversion.results import Notes, Object, Source

# et-operator keeps both there.
_MOVED = {"/etc/edl/discover_hosts.sh": names.DISCOVER_HOSTS_PATH, "/etc/edl/hostfile": f"{names.MOUNT_PATH}/hostfile"}
# https://horovod.readthedocs.io/en/stable/elastic_include.html#running-with-horovodrun
_SIZES = {
    "least": re.compile(r"(?:--min-np|--min-num-proc)[ =]+(\d+)\b"),
    "most": re.compile(r"(?:--max-np|--max-num-proc)[ =]+(\d+)\b"),
}


def texts(template: Source) -> Iterator[str]:
    """Commands, arguments and environment values of a pod template."""
    for container in template.get("spec", {}).get("containers", []):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (str(variable["value"]) for variable in container.get("env", []) if "value" in variable)


def names_discovery(template: Source) -> bool:
    """Whether the launcher of this template reads the host list."""
    return policy.names_discovery(texts(template))


def sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """The least and the most workers that horovodrun was told; None where it was not."""
    text = " ".join(texts(template))
    least, most = (pattern.search(text) for pattern in _SIZES.values())
    return (
        max(1, -(-int(least[1]) // slots)) if least else None,
        max(1, int(most[1]) // slots) if most else None,
    )


def moved(template: Source, notes: Notes, at: str) -> Object:
    """The template with paths of et-operator made the operator's."""
    containers = [_moved(container) for container in template.get("spec", {}).get("containers", [])]
    for old, new in _MOVED.items():
        if any(old in text for text in texts(template)):
            notes.add(at, f"{old} is {new} now")
    return {**template, "spec": {**template.get("spec", {}), "containers": containers}} if containers else {**template}


def _moved(container: Source) -> Object:
    result = dict(container)
    for key in container.keys() & {"command", "args"}:
        result[key] = [_text(part) for part in container[key]]
    if "env" in container:
        result["env"] = [
            {**variable, "value": _text(variable["value"])} if "value" in variable else variable
            for variable in container["env"]
        ]
    return result


def _text(part: Any) -> Any:  # noqa: ANN401 - YAML
    for old, new in _MOVED.items():
        part = part.replace(old, new) if isinstance(part, str) else part
    return part
