"""Who may ask the page's server, and who tries; how the browser gets the token, and nobody else."""

import stat
import webbrowser
from pathlib import Path

import pytest

from mpijob_elastic.cli.dashboard import guard
from mpijob_elastic.cli.dashboard.guard import open_browser, redirect

HOST = {"Host": "127.0.0.1:8765"}
URL = "http://127.0.0.1:8765/#token=s3cret"


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:8765", "[::1]:80", "[::1]"]
)
def test_the_machine_itself_is_answered_at_any_port(host: str) -> None:
    assert guard.foreign({"Host": host}) == ""
    assert (
        guard.foreign({"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"})
        == ""
    )


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8765",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.2",
        "[::1",
    ],
)
def test_another_name_that_leads_here_is_refused(host: str) -> None:
    assert "localhost" in guard.foreign({"Host": host, "Origin": f"http://{host}"})


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "http://localhost:8765"},
        {"Origin": "https://127.0.0.1:8765"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},  # another port of the same host
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "document"},
    ],
)
def test_another_page_of_the_browser_is_refused(headers: dict[str, str]) -> None:
    assert guard.foreign({**HOST, **headers}) == "another page sends this request"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret!", "Basic s3cret", "é\udcff"]
)
def test_a_guess_is_no_token(given: str) -> None:
    assert not guard.knows("s3cret", {"Authorization": given})
    assert not guard.knows("s3cret", {})
    assert guard.knows("s3cret", {"Authorization": "Bearer s3cret"})


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
