"""Decide which requests this server answers, and give the page its token.

Everything that runs in the same browser or on this machine can send requests, so:

- Host must name this machine itself. Another name that leads to 127.0.0.1 (DNS rebinding) is
  refused. Any port is accepted, because `ssh -L` may change the port.
- Origin and Sec-Fetch-Site, where a browser sends them, must name our own page. A navigation from
  another page to ours is accepted, because the private file navigates too: a navigation sends no
  token, and opens a tab of its own. A write must name its Origin.
- Data needs the token, in a header. A cookie is not enough, because browsers send cookies to every
  port of a host.

Everybody on a machine can list the arguments of processes, so the browser gets only the path of a
private file, which leads to the page. The token is in the URL's fragment, which no browser sends to
a server.
"""

import hmac
import os
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
OWN_SITES = frozenset({"same-origin", "none"})
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
# The headers of every answer.
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def foreign(headers: Mapping[str, str], *, writes: bool = False) -> str:
    """Return the sign that a request comes from another site; "" without one.

    writes: a request that writes has to name its origin.
    """
    host = headers.get("Host", "")
    if _name(f"//{host}") not in LOCAL:
        return "this page answers to localhost, 127.0.0.1 and [::1] only"
    origin = headers.get("Origin", "" if writes else f"http://{host}")
    leads = not writes and (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == (
        "navigate",
        "document",
    )
    is_own = leads or headers.get("Sec-Fetch-Site", "none") in OWN_SITES
    return "" if is_own and origin == f"http://{host}" else "another page sends this request"


def knows(token: str, headers: Mapping[str, str]) -> bool:
    """Return True if a request has the token."""
    given = headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode())


@contextmanager
def redirect(url: str) -> Iterator[Path]:
    """Give a file that leads a browser to `url`; only this user can read the file."""
    folder = Path(tempfile.mkdtemp(prefix="mpijob-elastic-"))  # of mode 0700
    try:
        file = folder / "open.html"
        file.touch(mode=0o600)
        file.write_text(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<title>mpijob-elastic</title><meta http-equiv="refresh" content="0;url={url}">'
        )
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_browser(file: Path) -> bool:
    """Open the file; return False if there is no browser with a screen."""
    has_screen = sys.platform in {"darwin", "win32"} or any(
        map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    )
    return has_screen and webbrowser.open(file.as_uri())


def remove(file: Path) -> None:
    """Remove the file, if the file is still there."""
    file.unlink(missing_ok=True)


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
