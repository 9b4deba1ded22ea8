"""Each real node has names, addresses and directories of its own, within what the switch knows how to reach."""

import ipaddress
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from lab.layout import Layout
from lab.node import addresses, containerd, kubelet, network
from lab.node.addresses import Place
from lab.options import MAX_REAL_NODES

ALL = addresses.places(MAX_REAL_NODES)
LAYOUT = Layout(Path("/state/lab"))


@pytest.mark.parametrize(
    "what",
    [
        lambda place: {place.name, place.containerd, place.kubelet},
        lambda place: {place.user},
        lambda place: {place.pod_network},
        lambda place: {place.address},
        lambda place: {place.lib(LAYOUT), place.log(LAYOUT)},
    ],
)
def test_no_two_nodes_share_anything(what: Callable[[Place], set[object]]) -> None:
    assert all(not what(one) & what(other) for one, other in combinations(ALL, 2))


def test_pods_of_a_node_and_the_node_are_in_its_part_of_the_network() -> None:
    whole = ipaddress.IPv4Network(addresses.POD_NETWORKS)
    for place in ALL:
        part = ipaddress.IPv4Network(place.pod_network)
        assert part.subnet_of(whole)
        assert ipaddress.ip_address(place.address) in part
        assert place.pod_network in network.configuration(place)
        assert f"--node-ip={place.address}" in kubelet.command(place, labels={})


def test_where_a_path_of_a_node_is_on_the_machine() -> None:
    there = Place(index=1).there(LAYOUT, containerd.CONFIGURATION)
    assert there == Path("/state/lab/node/real-1/lib/lab/containerd.toml")
