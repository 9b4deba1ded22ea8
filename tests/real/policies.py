"""Connections of our pods beside our NetworkPolicies, for no program of the lab's nodes enforces these."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lab.cluster import Cluster
from mpijob_elastic import names

LISTENING, ESTABLISHED = "0A", "01"  # include/net/tcp_states.h of Linux
READ = "print(open('/proc/net/tcp').read() + open('/proc/net/tcp6').read())"


@dataclass(frozen=True, kw_only=True)
class Ports:
    """Local ports of connections into a pod, remote ports of connections out of it."""

    into: frozenset[int]
    out: frozenset[int]


def used(cluster: Cluster, pod: dict[str, Any]) -> Ports:
    """Return what a pod of ours has now, with the ports on which it listens."""
    read = (
        "exec",
        pod["metadata"]["name"],
        "--namespace",
        names.NAMESPACE,
        "--",
        "python3.11",
        "-c",
        READ,
    )
    found = [line.split()[1:4] for line in cluster.kubectl(*read).splitlines() if ":" in line]
    listening = frozenset(_port(local) for local, _, state in found if state == LISTENING)
    outgoing = (one for one in found if one[2] == ESTABLISHED and _port(one[0]) not in listening)
    return Ports(into=listening, out=frozenset(_port(remote) for _, remote, _ in outgoing))


def allowed(cluster: Cluster, pod: dict[str, Any]) -> Ports:
    """Return what the policies of our namespace allow a pod of ours, from and to anywhere."""
    told = cluster.kubectl("get", "networkpolicies", "--namespace", names.NAMESPACE, "-o", "json")
    policies = [one["spec"] for one in json.loads(told)["items"] if _selects(one["spec"], pod)]
    assert {kind for policy in policies for kind in policy["policyTypes"]} == {"Ingress", "Egress"}
    return Ports(
        into=frozenset(_ports(policies, "ingress", pod)),
        out=frozenset(_ports(policies, "egress", pod)),
    )


def _selects(policy: dict[str, Any], pod: dict[str, Any]) -> bool:
    wanted, labels = policy["podSelector"].get("matchLabels", {}), pod["metadata"]["labels"]
    return all(labels.get(key) == value for key, value in wanted.items())


def _ports(policies: list[dict[str, Any]], direction: str, pod: dict[str, Any]) -> Iterator[int]:
    named = {one["name"]: one["containerPort"] for one in pod["spec"]["containers"][0]["ports"]}
    for policy in policies:
        for rule in policy.get(direction, ()):
            yield from (
                named.get(one["port"], one["port"])
                for one in rule["ports"]
                if one["protocol"] == "TCP"
            )


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
