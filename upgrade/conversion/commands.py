"""The command of a launcher: the sizes for horovodrun, and paths that have changed."""

from collections.abc import Iterator
from typing import Any

from mpijob_elastic import names
from mpijob_elastic.model import horovodrun, policy
from mpijob_elastic.model.horovodrun import Launch
from upgrade.conversion.results import Notes, Object, Source

# The paths of et-operator.
_MOVED = {"/etc/edl/discover_hosts.sh": names.DISCOVER_HOSTS_PATH, "/etc/edl/hostfile": f"{names.MOUNT_PATH}/hostfile"}


def texts(template: Source) -> Iterator[str]:
    """Return commands, arguments and environment values of a pod template."""
    for container in template.get("spec", {}).get("containers", []):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (str(variable["value"]) for variable in container.get("env", []) if "value" in variable)


def names_discovery(template: Source) -> bool:
    """Return True if the launcher of this template reads the host list."""
    return policy.names_discovery(texts(template))


def sizes(template: Source, *, slots: int) -> tuple[int | None, int | None]:
    """Return the least and the most workers, of `slots` each, for horovodrun; None without a bound."""
    launch = next(filter(None, map(_launch, template.get("spec", {}).get("containers", []))), None)
    least, most = (launch.min_np, launch.max_np) if launch else (None, None)
    return (
        max(1, -(-least // slots)) if least is not None else None,
        max(1, most // slots) if most is not None else None,
    )


def _launch(container: Source) -> Launch | None:
    return horovodrun.parse([str(word) for word in (*container.get("command", []), *container.get("args", []))])


def moved(template: Source, notes: Notes, at: str) -> Object:
    """Return the template with et-operator's paths replaced by mpi-operator's."""
    containers = [_moved(container) for container in template.get("spec", {}).get("containers", [])]
    for old, new in _MOVED.items():
        if any(old in text for text in texts(template)):
            notes.add(at, f"{old} becomes {new}")
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
