"""The API server gets a socket that it can use, or nothing is started."""

from pathlib import Path

import pytest
import yaml

from lab.errors import LabError
from lab.layout import Layout
from lab.node import addresses, egress


def test_the_socket_is_that_of_the_gateway(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    (selection,) = yaml.safe_load(egress.write_selection(layout).read_text())["egressSelections"]
    assert selection["name"] == "cluster"
    assert selection["connection"]["transport"] == {"uds": {"udsName": str(addresses.egress_socket(layout))}}


def test_a_path_that_no_socket_can_have_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="set XDG_STATE_HOME to a shorter one"):
        egress.write_selection(Layout(tmp_path / ("long" * 30)))
