"""The command of a launcher: the sizes for horovodrun, and paths that have changed."""

from collections.abc import Iterator
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model import horovodrun
from upgrade.conversion.results import Notes, Object, Source

# The paths of et-operator.
_MOVED = {"/etc/edl/discover_hosts.sh": names.DISCOVER_HOSTS_PATH, "/etc/edl/hostfile": f"{names.MOUNT_PATH}/hostfile"}


def containers(template: Source) -> list[Object]:
    """Return the containers of a pod template."""
    found: list[Object] = template.get("spec", {}).get("containers", [])
    return found


def texts(template: Source) -> Iterator[str]:
    """Return commands, arguments and environment values of a pod template."""
    for container in containers(template):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (str(variable["value"]) for variable in container.get("env", []) if "value" in variable)


def sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """Return the least and the most workers, of `slots` each, for horovodrun; None without a bound."""
    for container in containers(template):
        words = [str(word) for word in (*container.get("command", []), *container.get("args", []))]
        if launch := horovodrun.parse(words):
            least = None if launch.min_np is None else max(1, -(-launch.min_np // slots))
            most = None if launch.max_np is None else max(1, launch.max_np // slots)
            return least, most
    return None, None


def moved(template: Source, notes: Notes, at: str) -> Object:
    """Return the template with et-operator's paths replaced by mpi-operator's."""
    for old, new in _MOVED.items():
        if any(old in text for text in texts(template)):
            notes.add(at, f"{old} becomes {new}")
    found = [
        container | {key: _moved(container[key]) for key in ("command", "args", "env") if key in container}
        for container in containers(template)
    ]
    return {**template, "spec": {**template.get("spec", {}), "containers": found}} if found else {**template}


def _moved(part: Any) -> Any:
    if isinstance(part, list):
        return [_moved(one) for one in part]
    if isinstance(part, dict):  # a variable of the environment
        return part | {"value": _moved(part["value"])} if "value" in part else part
    for old, new in _MOVED.items():
        part = part.replace(old, new) if isinstance(part, str) else part
    return part
