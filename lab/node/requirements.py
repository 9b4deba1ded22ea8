"""Check what a real node needs of this machine before anything is started.

Being root says little: in a container, mounting, bridges or cgroups may be forbidden all the same.
So each thing is done once, in namespaces that end with the trial.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from lab.errors import LabError
from lab.layout import state_dir
from lab.node import cgroups, containerd, namespaces

# Programs, and the packages of Debian and Ubuntu that have them.
PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "iptables": "iptables",
    "mount": "mount",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
NETWORK_PLUGINS = "containernetworking-plugins"
# What a kubelet limits containers by. On v1 each is a hierarchy of its own, on v2 one holds all.
CONTROLLERS = ("cpu", "memory", "pids")
_PRIVILEGED = "run it outside of a container, or in a privileged one."


# What must work in new namespaces, in a folder of the disk where the lab keeps its files; and a
# script that does it.
TRIALS = {
    "mounting (CAP_SYS_ADMIN)": "mount -t tmpfs tmpfs .",
    "hiding a kernel setting behind a file": "touch f && mount --bind f /proc/sys/kernel/panic",
    "an overlay filesystem, which holds containers": (
        "mkdir l u w m && mount -t overlay -o lowerdir=l,upperdir=u,workdir=w overlay m"
    ),
    "a cgroup namespace": "unshare --cgroup true",
    "a network bridge": "ip link add trial type bridge",
    "a pair of network interfaces": "ip link add trial type veth peer name other",
    "another target for packets (iptables), as kube-proxy sets it": (
        "iptables -t nat -A OUTPUT -p tcp -m comment --comment trial -j DNAT --to-destination 10.0.0.1:1"
    ),
}


def check() -> None:
    """Raise LabError that names all that is missing."""
    if found := missing():
        raise LabError(
            "a real node cannot be had here:\n" + "\n".join(f"- {reason}" for reason in found)
        )


def missing() -> list[str]:
    """Return what is missing, a sentence each with what to do; nothing is left of the trials."""
    if sys.platform != "linux":
        return [f"Linux is needed, and this is {sys.platform}."]
    if not namespaces.is_root():
        return ["root is needed, for mounts, networks and cgroups: run it with sudo."]
    if packages := _missing_packages():
        return [
            f"programs are missing: run `apt-get install --no-install-recommends {' '.join(packages)}`."
        ]
    return [*_failed_trials(), *_missing_cgroups(), *_missing_devices()]


def _missing_packages() -> list[str]:
    absent = {package for program, package in PACKAGES.items() if shutil.which(program) is None}
    if containerd.plugin_directory() is None:
        absent.add(NETWORK_PLUGINS)
    return sorted(absent)


def _failed_trials() -> list[str]:
    separated = subprocess.run(
        namespaces.first("true"), capture_output=True, text=True, check=False
    )
    if separated.returncode:
        return [f"new namespaces are forbidden ({separated.stderr.strip()}): {_PRIVILEGED}"]
    failures = ((what, _failure(script)) for what, script in TRIALS.items())
    return [
        f"{what} does not work here ({failure}): {_PRIVILEGED}"
        for what, failure in failures
        if failure
    ]


def _failure(script: str) -> str | None:
    disk = state_dir()
    disk.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="mpijob-lab-", dir=disk) as folder:
        command = namespaces.first("sh", "-ec", script)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return (done.stderr.strip() or f"exit code {done.returncode}") if done.returncode else None


def _missing_cgroups() -> list[str]:
    hierarchies = cgroups.hierarchies()
    if not hierarchies:
        return [
            "no cgroups are mounted: `mount -t cgroup2 none /sys/fs/cgroup`, or run it outside of a container."
        ]
    group = f"{cgroups.PREFIX}trial-{os.getpid()}"
    try:
        cgroups.create(group)
        found = {
            controller for hierarchy in hierarchies for controller in _controllers(hierarchy, group)
        }
    except OSError as error:
        return [f"cgroups cannot be made here ({error}): {_PRIVILEGED}"]
    finally:
        cgroups.remove(group)
    absent = " ".join(f"+{controller}" for controller in CONTROLLERS if controller not in found)
    if not absent:
        return []
    # On v2 that fails where processes are in the topmost group, as in a container.
    return [
        f"new cgroups lack controllers: `echo {absent} > /sys/fs/cgroup/cgroup.subtree_control`, or {_PRIVILEGED}"
    ]


def _controllers(hierarchy: Path, group: str) -> list[str]:
    """Return what can be limited in a group; only v2 has a file that says so."""
    listed = hierarchy / group / "cgroup.controllers"
    return listed.read_text().split() if listed.exists() else hierarchy.name.split(",")


def _missing_devices() -> list[str]:
    # A kubelet reads the kernel's log for processes that were killed for want of memory, and ends
    # if it cannot.
    if os.access("/dev/kmsg", os.R_OK):
        return []
    return [
        "/dev/kmsg cannot be read, which the kubelet needs: in a container, pass the device in."
    ]
