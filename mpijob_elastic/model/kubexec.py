"""kubexec.sh: what the launcher's mpirun or horovodrun runs instead of ssh, and how it finds the pod of a host name.

[operator] writes it once, with or without `--container`. Only that very text is ever edited, by one line that takes
`.rN` off a host name: a script that somebody changed may rely on the name it is given.
"""

from __future__ import annotations

import re

# [operator] newConfigMap. A container's name is a DNS label. The guard's policy has the same pattern.
OPERATORS = re.compile(
    r"#!/bin/sh\nset -x\nPOD_NAME=\$1\nshift\n"
    r"/opt/kube/kubectl exec \$\{POD_NAME\}(?: --container [a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)?"
    r' -- /bin/sh -c "\$\*"'
)
_NAME = "POD_NAME=$1\n"
# Only what a POSIX shell has built in, for the launcher's image may have nothing else. What follows the last `.r` is
# a number in our host names alone: pod names end in `-worker-N`, whatever the job is called.
MAPPING = 'n=${POD_NAME##*.r}; case "$n" in ""|*[!0-9]*) ;; *) POD_NAME=${POD_NAME%.r*} ;; esac\n'


def mapped(script: str | None) -> str | None:
    """The script that finds the pod of any host name of ours; None where it is neither the operator's nor that."""
    own = _own(script)
    return None if own is None else own.replace(_NAME, _NAME + MAPPING, 1)


def is_mapped(script: str | None) -> bool:
    """Whether the script finds the pod of a numbered host name."""
    return script is not None and mapped(script) == script


def unmapped(script: str) -> str:
    """The operator's script again; a script that is not ours stays as it is."""
    return _own(script) or script


def _own(script: str | None) -> str | None:
    before = (script or "").replace(_NAME + MAPPING, _NAME, 1)
    return before if OPERATORS.fullmatch(before) else None
