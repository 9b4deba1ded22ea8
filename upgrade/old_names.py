"""Replace labels and paths of another operator in pod templates by those of mpi-operator v0.2.3.

mpi-operator v0.2.3, pkg/controllers/v1alpha2/mpi_job_controller.go; et-operator 96806fb,
pkg/controllers/trainingjob_controller.go and resource.go
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpijob_elastic import names
from upgrade.notes import Notes

Object = dict[str, Any]
Source = Mapping[str, Any]

_HOSTFILE = f"{names.MOUNT_PATH}/{names.KEY_HOSTFILE}"
_EDL_HOSTFILE = f"{names.EDL_PATH}/{names.KEY_HOSTFILE}"
_DEEPSPEED_HOSTFILE = "/job/hostfile"
_SCRIPT = re.compile(r"--host-discovery-script(?:=|\s+)[\"']?([^\s\"';&|]+)")
_FIELD_PATH = re.compile(r"metadata\.labels\['([^']*)'\]")


@dataclass(frozen=True, kw_only=True)
class OldNames:
    """What another operator calls things for which mpi-operator v0.2.3 has other names."""

    #: Labels of its pods, and those that have the same values now.
    labels: Mapping[str, str]
    #: The value of its group's label; "" if it is the same.
    group: str = ""
    #: Paths in the launcher, and those of now.
    paths: Mapping[str, str] = field(default_factory=dict)


V1ALPHA2 = OldNames(
    labels={
        "mpi_job_name": names.LABEL_JOB_NAME,
        "mpi_role_type": names.LABEL_JOB_ROLE,
        "group_name": names.LABEL_GROUP_NAME,
    }
)
ET_OPERATOR = OldNames(
    labels={
        "training-job-name": names.LABEL_JOB_NAME,
        "training-job-role": names.LABEL_JOB_ROLE,
    },
    group="kai.alibabacloud.com",
    paths={
        names.EDL_DISCOVER_HOSTS_PATH: names.DISCOVER_HOSTS_PATH,
        names.ARENA_DISCOVER_HOSTS_PATH: names.DISCOVER_HOSTS_PATH,
        _EDL_HOSTFILE: _HOSTFILE,
        _DEEPSPEED_HOSTFILE: _HOSTFILE,
    },
)
# What to do for some paths.
_TO_DO = {
    _EDL_HOSTFILE: "its lines are `NAME slots=N`, not `NAME:N`, which horovodrun's -H needs; "
    f"`sh {names.DISCOVER_HOSTS_PATH}` prints `NAME:N`",
    _DEEPSPEED_HOSTFILE: "deepspeed reaches the workers by SSH, for which mpi-operator v0.2.3 "
    "makes neither Services nor keys; start the ranks with horovodrun or mpirun",
}


def containers(template: Source) -> list[Object]:
    """Return the containers of a pod template."""
    found: list[Object] = template.get("spec", {}).get("containers", [])
    return found


def texts(template: Source) -> Iterator[str]:
    """Yield commands, arguments and environment values of a pod template."""
    for container in containers(template):
        yield from map(str, container.get("command", []))
        yield from map(str, container.get("args", []))
        yield from (
            str(variable["value"]) for variable in container.get("env", []) if "value" in variable
        )


def with_labels(template: Source, old: OldNames, notes: Notes, at: str) -> Object:
    """Return the template in which rules and variables name the labels of now."""
    renamed = _Renamed(old)
    result = {**template}
    if "spec" in template:
        result["spec"] = renamed.part(template["spec"])
    for change in sorted(renamed.changes):
        notes.add(at, f"the label {change}")
    for label, now in old.labels.items():
        if now != names.LABEL_GROUP_NAME and _is_named(label, template):
            notes.to_do(
                at,
                f"a command or a variable names the label {label}; the pods of mpi-operator "
                f"v0.2.3 have {now} instead",
            )
    return result


def with_paths(template: Source, old: OldNames, notes: Notes, at: str) -> Object:
    """Return a launcher's template with the paths of now."""
    paths = {path: now for path, now in old.paths.items() if _is_read(path, template)}
    for path, now in paths.items():
        if path in _TO_DO:
            notes.to_do(at, f"{path} becomes {now}: {_TO_DO[path]}")
        else:
            notes.add(at, f"{path} becomes {now}")
    changed = [
        container
        | {
            key: _moved(container[key], paths)
            for key in ("command", "args", "env")
            if key in container
        }
        for container in containers(template)
    ]
    if not changed:
        return {**template}
    return {**template, "spec": {**template["spec"], "containers": changed}}


def other_script(template: Source) -> str:
    """Return the host discovery script of a launcher if it is not the one that is mounted."""
    for container in containers(template):
        words = (*container.get("command", []), *container.get("args", []))
        for script in _SCRIPT.findall(" ".join(map(str, words))):
            if script != names.DISCOVER_HOSTS_PATH and not script.startswith("$"):
                return str(script)
    return ""


def _is_named(label: str, template: Source) -> bool:
    word = re.compile(rf"(?<![\w-]){re.escape(label)}(?![\w-])")
    return any(word.search(text) for text in texts(template))


def _path(path: str) -> re.Pattern[str]:
    """Match a path that is no part of a longer path."""
    return re.compile(rf"(?<![\w./}}-]){re.escape(path)}(?![\w/-]|\.\w)")


def _is_read(path: str, template: Source) -> bool:
    return any(_path(path).search(text) for text in texts(template))


def _moved(part: Any, paths: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_moved(one, paths) for one in part]
    if isinstance(part, dict):  # a variable of the environment
        return part | {"value": _moved(part["value"], paths)} if "value" in part else part
    for old, new in paths.items():
        part = _path(old).sub(new, part) if isinstance(part, str) else part
    return part


class _Renamed:
    """Replaces labels in the parts of a pod's spec, and notices which there are."""

    def __init__(self, old: OldNames) -> None:
        self.changes = set[str]()
        self._old = old
        # What is below these fields, at any depth, names labels of pods.
        self._rules: dict[str, Callable[[Any], Any]] = {
            "labelSelector": self._selector,
            "fieldPath": self._field_path,
        }

    def part(self, value: Any) -> Any:
        """Return a part of the spec with the labels of now."""
        if isinstance(value, list):
            return [self.part(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {key: self._rules.get(str(key), self.part)(one) for key, one in value.items()}

    def _selector(self, selector: Any) -> Any:
        if not isinstance(selector, dict):
            return selector
        result = {**selector}
        if isinstance(labels := selector.get("matchLabels"), dict):
            result["matchLabels"] = {
                self._label(key): self._value(key, value) for key, value in labels.items()
            }
        if isinstance(rules := selector.get("matchExpressions"), list):
            result["matchExpressions"] = [self._expression(one) for one in rules]
        return result

    def _expression(self, rule: Any) -> Any:
        if not isinstance(rule, dict):
            return rule
        key, values = str(rule.get("key", "")), rule.get("values")
        result = {**rule, "key": self._label(key)}
        if isinstance(values, list):
            result["values"] = [self._value(key, value) for value in values]
        return result

    def _field_path(self, path: Any) -> Any:
        match = _FIELD_PATH.fullmatch(path) if isinstance(path, str) else None
        return f"metadata.labels['{self._label(match[1])}']" if match else path

    def _label(self, label: Any) -> Any:
        now = self._old.labels.get(label)
        if now is None:
            return label
        self.changes.add(f"{label} becomes {now}")
        return now

    def _value(self, label: str, value: Any) -> Any:
        if label != names.LABEL_GROUP_NAME or value != self._old.group:
            return value
        self.changes.add(f"{label} {value} becomes {label} {names.GROUP}")
        return names.GROUP
