"""Who may ask the page's server, and who tries."""

import pytest

from mpijob_elastic.cli.dashboard import guard

HOST = {"Host": "127.0.0.1:8765"}


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8765", "[::1]:80", "[::1]"])
def test_the_machine_itself_is_answered_at_any_port(host: str) -> None:
    assert guard.foreign({"Host": host}) == ""
    assert guard.foreign({"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}) == ""


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.2", "[::1"],
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
    assert guard.foreign({**HOST, **headers}) == "another page asks"


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3cret!", "Basic s3cret", "é\udcff"]
)
def test_a_guess_is_no_token(given: str) -> None:
    assert not guard.knows("s3cret", {"Authorization": given})
    assert not guard.knows("s3cret", {})
    assert guard.knows("s3cret", {"Authorization": "Bearer s3cret"})
