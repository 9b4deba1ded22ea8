"""Identities in a lab: all certificates, and the kubeconfigs of the API server's clients."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from lab.kubeconfig import Server, write_certificate_kubeconfig
from lab.layout import Layout
from lab.node import proxy
from lab.node.addresses import GROUP, SERVICE_ADDRESS, Place
from lab.pki import Authority, KeyPair, write_service_account_keys

ADMINISTRATORS = "system:masters"
# Names under which a container of a real cluster reaches the API server.
API_SERVER_HOSTS = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    SERVICE_ADDRESS,
)


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """Certificate files of one lab, by what they are for."""

    authority: Path
    server: KeyPair  # etcd, kube-apiserver and podexec all serve on 127.0.0.1
    kubelet_client: KeyPair
    front_proxy_authority: Path
    front_proxy: KeyPair
    service_accounts: KeyPair
    administrator: KeyPair
    kubelets: Mapping[Place, KeyPair]  # of the real nodes: as a client and as a server


def write_credentials(
    layout: Layout, server_url: str, *, now: datetime, real_nodes: Sequence[Place] = ()
) -> Credentials:
    """Write all keys, certificates and kubeconfigs of a lab."""
    authority = Authority(layout.pki, "ca", now=now)
    front_proxy = Authority(layout.pki, "front-proxy-ca", now=now)
    server = Server(url=server_url, ca=authority.certificate.read_bytes())
    administrator = authority.issue("admin", user="lab-admin", group=ADMINISTRATORS)
    write_certificate_kubeconfig(layout.kubeconfig, server, user="lab-admin", pair=administrator)
    for user, group in (
        ("system:kube-controller-manager", None),
        ("system:kube-scheduler", None),
        ("lab-kwok", ADMINISTRATORS),
    ):
        name = user.removeprefix("system:")
        pair = authority.issue(name, user=user, group=group)
        write_certificate_kubeconfig(layout.kubeconfigs / name, server, user=user, pair=pair)
    if real_nodes:
        inside = Server(url=proxy.API_SERVER, ca=server.ca)
        pair = authority.issue(proxy.COMPONENT, user=proxy.USER)
        write_certificate_kubeconfig(proxy.kubeconfig(layout), inside, user=proxy.USER, pair=pair)
    return Credentials(
        authority=authority.certificate,
        server=authority.issue("server", user="lab-server", hosts=API_SERVER_HOSTS),
        kubelet_client=authority.issue(
            "kubelet-client", user="kube-apiserver-kubelet-client", group=ADMINISTRATORS
        ),
        front_proxy_authority=front_proxy.certificate,
        front_proxy=front_proxy.issue("front-proxy", user="front-proxy-client"),
        service_accounts=write_service_account_keys(layout.pki),
        administrator=administrator,
        kubelets={place: _kubelet(authority, place) for place in real_nodes},
    )


def _kubelet(authority: Authority, place: Place) -> KeyPair:
    return authority.issue(
        place.kubelet, user=place.user, group=GROUP, hosts=(place.name, place.address)
    )
