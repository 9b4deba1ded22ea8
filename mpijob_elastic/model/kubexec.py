"""kubexec.sh, which mpirun or horovodrun runs instead of ssh, and our edit of the script.

[operator] writes the script once, with or without `--container`. We edit only that exact text,
because a script that a user changed may rely on the name it gets:
- A line takes `.rN` off a host name, so that the launcher finds the host's pod.
- `exec` comes before kubectl. [horovod] When horovodrun gives up, it ends only the children of the
  shell that it has started (runner/common/util/safe_shell_exec.py). Where /bin/sh is dash, that
  child is the script. kubectl would live on with horovodrun's pipes, and horovodrun waits for it.
  A rank that started before the edit is not helped: its shell has read the script already.

The `kubectl exec`s of the script hold the ranks, one process in the launcher for each rank.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from mpijob_elastic.model.bounds import LONGEST_KUBEXEC

# [operator] newConfigMap. A container's name is a DNS label. The guard's policy has the same
# pattern.
OPERATORS = re.compile(
    r"#!/bin/sh\nset -x\nPOD_NAME=\$1\nshift\n"
    r"/opt/kube/kubectl exec \$\{POD_NAME\}(?: --container [a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?"
    r' -- /bin/sh -c "\$\*"'
)
_CONTAINER = re.compile(r" (?:--container|-c)[ =](?P<name>[a-z0-9][a-z0-9-]*)")
_NAME = "POD_NAME=$1\n"
# Only builtins of a POSIX shell, because the launcher's image may have nothing else. Only our host
# names have a number after the last `.r`: pod names end in `-worker-N`.
MAPPING = 'n=${POD_NAME##*.r}; case "$n" in ""|*[!0-9]*) ;; *) POD_NAME=${POD_NAME%.r*} ;; esac\n'
KUBECTL = "\n/opt/kube/kubectl exec "
EXEC = "\nexec /opt/kube/kubectl exec "
# Attempts to end an exec, each after another look (decide/frozen_execs).
MOST_TRIES = 6


def container(script: str | None) -> str | None:
    """Return the container that the script names to kubectl, also in a script that a user changed.

    "" if the operator's script names no container. None if the script is too long to read, or if a
    changed script names no container or several.
    """
    # Kubectl's own options end where the command that it runs begins.
    options = (
        part.partition("\n")[0].partition(" -- ")[0]
        for part in _readable(script).split("kubectl exec")[1:]
    )
    found = {match and match["name"] for match in map(_CONTAINER.search, options)}
    if len(found) != 1:
        return None
    return found.pop() or ("" if _own(script) else None)


def mapped(script: str | None) -> str | None:
    """Return the script with our edit.

    None if `script` is not the operator's script, with our edit or without.
    """
    own = _own(script)
    if own is None:
        return None
    return own.replace(_NAME, _NAME + MAPPING, 1).replace(KUBECTL, EXEC, 1)


def is_mapped(script: str | None) -> bool:
    """Return True if the script finds the pod of a numbered host name.

    So does a script that we edited before 0.4.0, which runs kubectl without `exec`.
    """
    return _own(script) is not None and _NAME + MAPPING in _readable(script)


def unmapped(script: str) -> str:
    """Return the script without our edit; any other script is returned unchanged."""
    return _own(script) or script


def _readable(script: str | None) -> str:
    return script if script and len(script) <= LONGEST_KUBEXEC else ""


def _own(script: str | None) -> str | None:
    before = _readable(script)
    if _NAME + MAPPING in before:
        before = before.replace(_NAME + MAPPING, _NAME, 1).replace(EXEC, KUBECTL, 1)
    return before if OPERATORS.fullmatch(before) else None


@dataclass(frozen=True, kw_only=True)
class Exec:
    """A running `kubectl exec` in a launcher."""

    #: Its process id in the launcher.
    pid: int
    #: The pod that it leads to.
    pod: str
    #: Its start, in seconds since the epoch.
    started_at: float
    #: Its start in field 22 of /proc/PID/stat, which differs for a later process of the same id.
    ticks: int = 0


@dataclass(frozen=True, kw_only=True)
class RollCall:
    """The result of a look for the execs into many workers at once."""

    #: When the launcher was asked, in seconds since the epoch; 0 if never.
    asked_at: float = 0.0
    #: True if it has answered.
    answered: bool = False
    #: The host names of the workers that were called, by pod.
    hosts: Mapping[str, str] = field(default_factory=dict)
    #: The pods of these into which it held no exec.
    missing: frozenset[str] = frozenset()

    @property
    def is_complete(self) -> bool:
        """True if an exec into each of these workers ran."""
        return self.answered and not self.missing


NO_ROLL_CALL = RollCall()


@dataclass(frozen=True, kw_only=True)
class HeldExecs:
    """The result of looks into a launcher; times are seconds since the epoch."""

    #: Time of the last look; 0 if there was none.
    asked_at: float = 0.0
    #: The reasons for the last look.
    about: frozenset[str] = frozenset()
    #: Execs without a peer at the last look.
    suspects: tuple[Exec, ...] = ()
    #: Suspects of two looks that were not ended since.
    frozen: tuple[Exec, ...] = ()
    #: How often we have tried to end each suspect.
    tries: Mapping[Exec, int] = field(default_factory=dict)
    #: Time of the last try; 0 if there was none.
    tried_at: float = 0.0
    #: True if the last look could not tell the launcher's processes from those of other containers.
    hidden: bool = False
    #: The reasons that the last answer confirmed: a rank is missed, and its exec has ended.
    ended: frozenset[str] = frozenset()
    #: The last roll call, which is a look of its own.
    roll_call: RollCall = NO_ROLL_CALL

    @cached_property
    def unended(self) -> frozenset[str]:
        """Pods of suspects that we have not ended."""
        frozen = {*self.frozen}
        return frozenset(
            one.pod for one in self.suspects if one in frozen or self.tries.get(one, 0) < MOST_TRIES
        )
