"""A process that finds an API server as a pod does: by variables, and by files where a kubelet mounts them."""

import os
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from lab.errors import LabError
from lab.kubeconfig import read_server
from lab.pki import write_private
from mpijob_elastic.kube.in_cluster import HOST, PORT, SERVICE_ACCOUNT

# The files are copied, not mounted, because /run may hide the folder that they come from. A change
# of namespaces makes the kernel forget that the child dies with its parent.
_RUN = f"""
set -e
cd "$1"
shift
mount -t tmpfs -o mode=755 tmpfs /var/run
mkdir -p {SERVICE_ACCOUNT}
cp token ca.crt namespace {SERVICE_ACCOUNT}
cd "$1"
shift
exec setpriv --pdeathsig KILL "$@"
"""


def write_service_account(folder: Path, kubeconfig: Path) -> dict[str, str]:
    """Write the files of the ServiceAccount in a kubeconfig of the lab, and return a pod's variables.

    The token lasts as long as that of the kubeconfig.
    """
    content = yaml.safe_load(kubeconfig.read_text())
    server = read_server(kubeconfig)
    write_private(folder / "token", content["users"][0]["user"]["token"].encode())
    (folder / "ca.crt").write_bytes(server.ca)
    (folder / "namespace").write_text(content["contexts"][0]["context"]["namespace"])
    url = urlsplit(server.url)
    return {HOST: url.hostname or "", PORT: str(url.port or 443)}


def with_service_account(folder: Path, *command: str) -> list[str]:
    """Return a command that runs `command` with the files of a folder where a pod has them.

    It keeps its pid and its working directory. Nobody else sees the files there. Raises LabError
    where this machine does not let us mount.
    """
    if reason := obstacle():
        raise LabError(f"a process cannot start as in a pod: {reason}")
    return [*_mounting(), "sh", "-c", _RUN, "sh", str(folder), str(Path.cwd()), *command]


def pods_work() -> bool:
    """Tell whether this machine lets us mount."""
    return not obstacle()


def obstacle() -> str:
    """Return why this machine does not let us mount, and what it needs; "" if it does.

    Root may mount. Others may in a user namespace of their own, where they are allowed to make one.
    """
    for program in ("unshare", "setpriv"):
        if not shutil.which(program):
            return f"{program} is missing (package util-linux)"
    probe = (*_mounting(), "mount", "-t", "tmpfs", "tmpfs", "/var/run")
    done = subprocess.run(probe, capture_output=True, check=False)
    if done.returncode == 0:
        return ""
    said = done.stderr.decode(errors="replace").strip()
    return (
        f"{said}; be root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0 where there are such)"
    )


def _mounting() -> tuple[str, ...]:
    as_user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return ("unshare", *as_user, "--mount")
