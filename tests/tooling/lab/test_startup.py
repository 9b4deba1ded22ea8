"""A port that another program takes at the last moment costs a second start, and nothing else."""

import os
import socket
from pathlib import Path

import pytest

from lab.build import ensure_programs
from lab.children import Children
from lab.layout import Layout
from lab.options import Options
from lab.ports import free_ports
from lab.startup import Startup
from lab.state import Request
from lab.versions import DEFAULT_KUBERNETES


class LosesOne:
    """Free ports, but the last of the first choice is taken when it comes to be used."""

    def __init__(self, taken: int) -> None:
        self.taken = taken
        self.choices: list[list[int]] = []

    def __call__(self, count: int) -> list[int]:
        ports = free_ports(count)
        self.choices.append(ports if self.choices else [*ports[:-1], self.taken])
        return self.choices[-1]


@pytest.mark.lab
def test_a_lost_port_is_chosen_again(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    for directory in (layout.logs, layout.pki, layout.kubeconfigs):
        directory.mkdir()
    with socket.socket() as other, Children(layout, environment={"PATH": os.environ["PATH"]}) as children:
        other.bind(("127.0.0.1", 0))
        other.listen()
        choose = LosesOne(other.getsockname()[1])
        request = Request(
            name="lost", options=Options(nodes=1), programs=ensure_programs(DEFAULT_KUBERNETES, lambda _: None)
        )
        started = Startup(
            layout=layout,
            request=request,
            children=children,
            choose_ports=choose,
            say=lambda _: None,
            interrupted=lambda: None,
        ).run()
    assert len(choose.choices) == 2
    assert str(choose.choices[1][2]) in started.server
