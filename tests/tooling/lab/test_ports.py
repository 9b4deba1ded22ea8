"""Ports that keep free while a program that has one is started again."""

from pathlib import Path

from lab.ports import free_ports


def test_no_port_is_one_that_a_connection_may_get() -> None:
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    found = free_ports(50)
    assert len(set(found)) == 50
    assert max(found) < lowest
