"""The command line of each component of a lab."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.credentials import Credentials
from lab.errors import LabError
from lab.layout import Layout
from lab.node.addresses import SERVICE_NETWORK
from lab.programs import Programs
from lab.versions import KubernetesVersion

MANIFESTS = Path(__file__).parent / "manifests"
CRDS = (MANIFESTS / "mpijob-crd.yaml", MANIFESTS / "podgroup-crd.yaml")
ISSUER = "https://kubernetes.default.svc"
# The default limits (20 requests a second for the controllers, 50 for the scheduler) are made for
# busy clusters; here they would only blur what the operator and the controller under test do.
UNHURRIED = ("--kube-api-qps=500", "--kube-api-burst=1000")
# How often HPAs look; 15 s by default. Everything else of theirs a HPA can say itself, in its
# `behavior`.
AUTOSCALER_PERIOD = "1s"

# Sandboxes of `kubectl exec` need privileges: root has them, others where user namespaces are
# allowed (Ubuntu 24.04 restricts them, and so do most containers). Where they cannot be had, exec
# is not offered.
TOOLS = ("unshare", "nsenter")
_NAMESPACES = ("--pid", "--fork", "--kill-child", "--mount-proc")


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Loopback ports of one start."""

    etcd: int
    etcd_peer: int
    api_server: int
    kubelet: int


@dataclass(frozen=True, kw_only=True)
class GangFlags:
    """The flags for Kubernetes' own gangs, which are off by default."""

    #: For API server, controllers and scheduler.
    gates: str
    #: For the API server, which serves no PodGroups without it.
    served: str


# The newest first: kubernetes v1.37 removed the gate GangScheduling and PodGroups v1alpha2.
GANGS: Sequence[tuple[KubernetesVersion, GangFlags]] = (
    (
        KubernetesVersion(1, 37, 0),
        GangFlags(
            gates="--feature-gates=GenericWorkload=true",
            served="--runtime-config=scheduling.k8s.io/v1beta1=true",
        ),
    ),
    (
        KubernetesVersion(1, 36, 0),
        GangFlags(
            gates="--feature-gates=GenericWorkload=true,GangScheduling=true",
            served="--runtime-config=scheduling.k8s.io/v1alpha2=true",
        ),
    ),
)


def gang_flags(version: KubernetesVersion) -> GangFlags:
    """Return the flags for gangs of a version; raise LabError for one that has no such PodGroups."""
    for since, flags in GANGS:
        if version >= since:
            return flags
    raise LabError(f"Kubernetes {version} has no PodGroups of its own that we know; 1.36 has.")


@dataclass(frozen=True, kw_only=True)
class Component:
    """A program to run: its `name` is also that of its log."""

    name: str
    command: Sequence[str]

    def also(self, *flags: str) -> "Component":
        """Return the same with further flags; the last of two that contradict each other counts."""
        return Component(name=self.name, command=[*self.command, *flags])


def etcd(programs: Programs, layout: Layout, credentials: Credentials, ports: Ports) -> Component:
    """Return etcd, which only holders of a certificate of this lab can talk to."""
    client = f"https://127.0.0.1:{ports.etcd}"
    peer = f"https://127.0.0.1:{ports.etcd_peer}"
    pair, authority = credentials.server, credentials.authority
    command = [
        str(programs.etcd),
        "--name=lab",
        f"--data-dir={layout.etcd}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=lab={peer}",
        f"--cert-file={pair.certificate}",
        f"--key-file={pair.key}",
        "--client-cert-auth",
        f"--trusted-ca-file={authority}",
        f"--peer-cert-file={pair.certificate}",
        f"--peer-key-file={pair.key}",
        "--peer-client-cert-auth",
        f"--peer-trusted-ca-file={authority}",
        "--unsafe-no-fsync",  # a lab has nothing to lose in a power cut
        "--log-level=warn",
    ]
    return Component(name="etcd", command=command)


def api_server(
    programs: Programs, layout: Layout, credentials: Credentials, ports: Ports
) -> Component:
    """Return kube-apiserver, with RBAC, an audit log, and the aggregation layer ready for an APIService."""
    c = credentials
    command = [
        str(programs.kube_apiserver),
        f"--etcd-servers=https://127.0.0.1:{ports.etcd}",
        f"--etcd-cafile={c.authority}",
        f"--etcd-certfile={c.server.certificate}",
        f"--etcd-keyfile={c.server.key}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={ports.api_server}",
        # Endpoints may not hold a loopback address, so the `kubernetes` Service has none.
        "--endpoint-reconciler-type=none",
        f"--tls-cert-file={c.server.certificate}",
        f"--tls-private-key-file={c.server.key}",
        f"--client-ca-file={c.authority}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged=true",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={c.service_accounts.certificate}",
        f"--service-account-signing-key-file={c.service_accounts.key}",
        f"--kubelet-certificate-authority={c.authority}",
        f"--kubelet-client-certificate={c.kubelet_client.certificate}",
        f"--kubelet-client-key={c.kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={c.front_proxy_authority}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={c.front_proxy.certificate}",
        f"--proxy-client-key-file={c.front_proxy.key}",
        # The API server then goes where a Service of type ExternalName points, so to loopback too.
        "--enable-aggregator-routing=false",
        f"--audit-policy-file={MANIFESTS / 'audit-policy.yaml'}",
        f"--audit-log-path={layout.audit_log}",
        "--audit-log-mode=blocking",  # a request that was answered is in the log
        "--audit-log-maxsize=100000",  # MB; it would begin another file at 100
        "--profiling=false",
    ]
    return Component(name="kube-apiserver", command=command)


def controller_manager(programs: Programs, layout: Layout, credentials: Credentials) -> Component:
    """Return kube-controller-manager with its default controllers."""
    command = [
        str(programs.kube_controller_manager),
        f"--kubeconfig={layout.kubeconfigs / 'kube-controller-manager'}",
        f"--root-ca-file={credentials.authority}",
        f"--service-account-private-key-file={credentials.service_accounts.key}",
        "--use-service-account-credentials=true",
        f"--horizontal-pod-autoscaler-sync-period={AUTOSCALER_PERIOD}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        *UNHURRIED,
    ]
    return Component(name="kube-controller-manager", command=command)


def scheduler(programs: Programs, layout: Layout) -> Component:
    """Return kube-scheduler."""
    command = [
        str(programs.kube_scheduler),
        f"--kubeconfig={layout.kubeconfigs / 'kube-scheduler'}",
        "--leader-elect=false",
        "--secure-port=0",
        "--profiling=false",
        *UNHURRIED,
    ]
    return Component(name="kube-scheduler", command=command)


def kwok(programs: Programs, layout: Layout) -> Component:
    """Return kwok, which plays the kubelets' part of all nodes."""
    command = [
        str(programs.kwok),
        f"--kubeconfig={layout.kubeconfigs / 'lab-kwok'}",
        f"--config={MANIFESTS / 'kwok-stages.yaml'}",
        "--manage-all-nodes",
        "--node-ip=127.0.0.1",
        "--node-lease-duration-seconds=40",
        "--cidr=10.244.0.0/16",
    ]
    return Component(name="kwok", command=command)


def podexec(
    programs: Programs, layout: Layout, credentials: Credentials, ports: Ports
) -> Component:
    """Return the server that answers `kubectl exec` for all nodes, in a PID namespace of its own."""
    command = [
        *confinement(),
        str(programs.podexec),
        f"-address=127.0.0.1:{ports.kubelet}",
        f"-certificate={credentials.server.certificate}",
        f"-key={credentials.server.key}",
        f"-client-authority={credentials.authority}",
        f"-kubeconfig={layout.kubeconfig}",
    ]
    return Component(name="podexec", command=command)


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
