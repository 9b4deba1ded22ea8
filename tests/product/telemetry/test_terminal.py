"""Text that users write in their jobs does not drive an administrator's terminal."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mpijob_elastic import telemetry
from mpijob_elastic.cli.jobs.watch import LivePage
from mpijob_elastic.telemetry.escapes import printable
from mpijob_elastic.telemetry.terminal import say
from tests.product.cli import worlds

# Clears the screen; the same with one character; turns a line around; ends the line; a bell; half a
# character.
HOSTILE = "\x1b[2J \x9b2J \u202e \r\n \x07 \x7f \ud800"


def test_what_does_not_print_is_shown_and_plain_text_stays() -> None:
    assert printable(HOSTILE) == r"\u001b[2J \u009b2J \u202e \u000d\u000a \u0007 \u007f \ud800"
    plain = "train-worker-1: 3→1, 日本語 ü"
    assert printable(plain) == plain


@given(st.text(), st.text())
def test_every_text_becomes_one_line_that_prints(text: str, more: str) -> None:
    assert printable(text + more).isprintable()
    if '"' not in text and "\\" not in text:
        assert json.loads(f'"{printable(text)}"') == text


def test_commands_print_it_so(capsys: pytest.CaptureFixture[str]) -> None:
    say("one", f"two {HOSTILE}", lead="> ")
    say(HOSTILE, err=True)
    out, err = capsys.readouterr()
    assert out.splitlines() == ["> one", f"two {printable(HOSTILE)}"]
    assert err == f"{printable(HOSTILE)}\n"


def test_the_live_page_shows_it_so() -> None:
    page, shown = LivePage(), io.StringIO()
    page.show(worlds.at_rest(2), [HOSTILE])
    Console(file=shown, width=400).print(page.render())
    assert printable(HOSTILE) in shown.getvalue()
    assert shown.getvalue().replace("\n", "").isprintable()


@pytest.fixture
def _handlers() -> Iterator[None]:
    before, level = logging.getLogger().handlers[:], logging.getLogger().level
    yield
    logging.getLogger().handlers[:] = before
    logging.getLogger().setLevel(level)


def tell() -> None:
    """Log in each way that we do."""
    logging.getLogger("x").info("%(outcome)s: %(object)s", {"outcome": "warned", "object": HOSTILE})
    logging.getLogger("y").warning("ignoring %s", HOSTILE)
    logging.getLogger("z").error("failed", exc_info=ValueError(HOSTILE))


@pytest.mark.usefixtures("_handlers")
def test_logs_on_a_terminal_show_it_so(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry.configure_logs(log_format="console", level="info")
    tell()
    assert all(line.isprintable() for line in capsys.readouterr().err.split("\n"))


@pytest.mark.usefixtures("_handlers")
def test_logs_for_machines_are_an_object_a_line_with_named_arguments_as_fields(
    capsys: pytest.CaptureFixture[str],
) -> None:
    telemetry.configure_logs(log_format="json", level="info")
    logging.getLogger("x").debug("hidden")
    tell()
    reviewed, ignored, failed = map(json.loads, capsys.readouterr().err.splitlines())
    assert (reviewed["outcome"], reviewed["object"]) == ("warned", HOSTILE)
    assert (reviewed["event"], reviewed["level"], reviewed["logger"]) == (
        f"warned: {HOSTILE}",
        "info",
        "x",
    )
    assert ignored.keys() == {"event", "level", "logger", "timestamp"}
    assert "ValueError" in failed["exception"]
