"""Who may ask this server. Everything else that runs in the same browser, or on this machine, may try.

- Host must name this machine itself: another name that leads to 127.0.0.1 (DNS rebinding) is refused. Any port, because
  `ssh -L` may change it.
- Origin and Sec-Fetch-Site, where a browser sends them, must say that our own page asks. Any page may lead to ours, as
  the private file does: that sends no token, and opens a tab of its own. A write must name its Origin.
- Data needs the token, in a header. No cookie: browsers send cookies to every port of a host.
"""

import hmac
from collections.abc import Mapping
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
# Sent with every answer.
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
    """Return why a request comes from elsewhere, "" if it does not. writes: it has to say where it comes from."""
    host = headers.get("Host", "")
    if _name(f"//{host}") not in LOCAL:
        return "this page answers to localhost, 127.0.0.1 and [::1] only"
    origin = headers.get("Origin", "" if writes else f"http://{host}")
    leads = not writes and (headers.get("Sec-Fetch-Mode"), headers.get("Sec-Fetch-Dest")) == ("navigate", "document")
    is_own = leads or headers.get("Sec-Fetch-Site", "none") in OWN_SITES
    return "" if is_own and origin == f"http://{host}" else "another page asks"


def knows(token: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request has the token."""
    given = headers.get("Authorization", "").removeprefix("Bearer ")
    return hmac.compare_digest(given.encode(errors="surrogateescape"), token.encode())


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
