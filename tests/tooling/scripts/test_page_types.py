"""The types by which the page's JavaScript is checked are those of the JSON that the server sends."""

import re
from pathlib import Path

import msgspec
import pytest

from mpijob_elastic.cli.jobs import report
from mpijob_elastic.diagnosis.facts import Finding

TYPES = (Path(__file__).parents[3] / "scripts" / "page" / "types.d.ts").read_text()


SENT = (
    report.ScaleReport,
    report.Draining,
    report.QueueReport,
    report.WorkerReport,
    report.LauncherReport,
    report.JobReport,
    Finding,
)


@pytest.mark.parametrize("sent", [pytest.param(sent, id=sent.__name__) for sent in SENT])
def test_an_interface_has_the_fields_that_are_sent(sent: type[msgspec.Struct]) -> None:
    pattern = rf"^interface {sent.__name__} \{{$(.*?)^\}}$"
    (body,) = re.findall(pattern, TYPES, re.MULTILINE | re.DOTALL)
    fields = [field.encode_name for field in msgspec.structs.fields(sent)]
    assert re.findall(r"^  (\w+)\??:", body, re.MULTILINE) == fields
