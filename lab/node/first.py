"""The first process of the node's namespaces: sets them up, then collects the processes that others leave behind.

python -m lab.node.first LIB LOG KUBELET GROUP ADDRESS
"""

import signal
import subprocess
import sys
from pathlib import Path

from lab.node import cgroups
from lab.node.addresses import BRIDGE, LAB, LIB, LOG, PREFIX_LENGTH, RUN

# What a kubelet wants of the kernel (pkg/kubelet/cm/container_manager_linux.go,
# setupKernelTunables). These settings are the whole machine's, so it is shown files that say they
# are as it wants them.
TUNABLES = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
# Without one of its own a bridge has the lowest address of its ports: it changes when pods come and
# go, and those that stay send into the void until they ask for it again.
BRIDGE_ADDRESS = "02:00:00:00:00:01"


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def _bind(source: Path, target: Path) -> None:
    _run("mount", "--rbind", str(source), str(target))


def set_up_mounts(lib: Path, log: Path, kubelet: Path) -> None:
    """Give the node directories of its own where its programs keep theirs; `kubelet` gets into LAB.

    The order matters: afterwards nothing is seen any more of what was below /var/lib, /var/log and
    /run.
    """
    lab = lib / LAB.relative_to(LIB)
    for name, value in TUNABLES.items():
        shown = lab / name.replace("/", "-")
        shown.write_text(f"{value}\n")
        _bind(shown, Path("/proc/sys") / name)
    program = lab / "kubelet"
    program.touch()
    _bind(kubelet, program)
    _bind(log, LOG)
    _bind(lib, LIB)
    _run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", str(RUN))
    _run("mount", "--make-rshared", "/")  # containers may ask for propagation


def set_up_groups(group: str) -> None:
    """Show each cgroup hierarchy as the namespace has it: from the node's group on."""
    for hierarchy in cgroups.hierarchies():
        _bind(hierarchy / group, hierarchy)


def set_up_network(address: str) -> None:
    """Give the node the bridge that its pods are going to hang on, with the node's address."""
    ip = ("ip", "link")
    _run(*ip, "set", "lo", "up")
    _run(*ip, "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
    _run("ip", "address", "add", f"{address}/{PREFIX_LENGTH}", "dev", BRIDGE)
    _run(*ip, "set", BRIDGE, "up")


def main() -> None:
    """Set up, say so, and stay."""
    *paths, group, address = sys.argv[1:]
    set_up_groups(group)
    set_up_mounts(*map(Path, paths))
    set_up_network(address)
    (LAB / "prepared").touch()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel then collects orphans by itself
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
