"""Detect if pods can have sandboxes here, and start the server of `kubectl exec` so that no sandbox outlives it.

Namespaces need privileges: root has them, others where user namespaces are allowed (Ubuntu 24.04 restricts them, and so
do most containers). Where they cannot be had, exec is not offered.
"""

import os
import shutil
import subprocess

TOOLS = ("unshare", "nsenter")
_NAMESPACES = ("--pid", "--fork", "--kill-child", "--mount-proc")


def confinement() -> tuple[str, ...]:
    """Return what goes before a command so that it is the first process of a PID namespace, which ends with it."""
    as_user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *as_user, *_NAMESPACES)


def sandboxes_work() -> bool:
    """Tell whether a PID namespace can be had, and another within."""
    if not all(map(shutil.which, TOOLS)):
        return False
    probe = (*confinement(), "unshare", *_NAMESPACES, "true")
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0
