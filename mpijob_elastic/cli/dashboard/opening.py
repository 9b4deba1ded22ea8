"""Open the page in the user's browser without showing the token to others.

Everybody on a machine may list the arguments of processes, so the browser gets the path of a private file, which leads
to the page. The token is in the URL's fragment, which no browser sends to a server.
"""

import os
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def redirect(url: str) -> Iterator[Path]:
    """Give a file that leads a browser to `url`; only this user can read it."""
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
    """Open the file; return whether there is a browser with a screen."""
    has_screen = sys.platform in {"darwin", "win32"} or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return has_screen and webbrowser.open(file.as_uri())


def remove(file: Path) -> None:
    """Remove the file once the page has its token."""
    file.unlink(missing_ok=True)
