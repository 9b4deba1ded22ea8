"""How the browser gets the token, and nobody else."""

import stat
import webbrowser
from pathlib import Path

import pytest

from mpijob_elastic.cli.dashboard.guard import open_browser, redirect

URL = "http://127.0.0.1:8765/#token=s3cret"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_this_user_can_read_the_file_and_it_goes() -> None:
    with redirect(URL) as file:
        assert (mode(file), mode(file.parent)) == (0o600, 0o700)
        assert f'content="0;url={URL}"' in file.read_text()
    assert not file.parent.exists()


def test_no_argument_of_a_program_has_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def keep(url: str) -> bool:
        opened.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", keep)
    monkeypatch.setenv("DISPLAY", ":0")
    with redirect(URL) as file:
        assert open_browser(file)
        assert opened == [file.as_uri()]
        assert "s3cret" not in opened[0]


def test_without_a_screen_no_browser_takes_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _url: pytest.fail("opened"))
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with redirect(URL) as file:
        assert not open_browser(file)
