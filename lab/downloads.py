"""Fetches the Go modules of several builds, many at once; Go by itself fetches as many as there are cores.

A program's go.mod requires exactly what its packages need, so nothing is fetched in vain. A module
is in Go's cache wholly or not at all (https://go.dev/ref/mod#module-cache): whatever has been
fetched when this process is killed, the next run has.
"""

import json
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from lab.errors import LabError
from lab.golang import download, end_calls, run_go

# Most of a download is waiting for an answer, and each is a process of 30 MB.
AT_ONCE = 16


@dataclass(frozen=True)
class Module:
    """A module at a version."""

    #: As in an import, or what a go.mod replaces it with.
    path: str
    #: As Go writes it, as v1.2.3.
    version: str

    def __str__(self) -> str:
        return f"{self.path}@{self.version}"

    def in_cache(self, cache: Path) -> Path:
        """Return the archive's path within Go's module cache (https://go.dev/ref/mod#goproxy-protocol)."""
        return (
            cache
            / "cache"
            / "download"
            / _escaped(self.path)
            / "@v"
            / f"{_escaped(self.version)}.zip"
        )


class Downloads:
    """Downloads under way: a context manager, at whose end those that have not begun are left out."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(AT_ONCE)
        self._lock = Lock()
        self._begun: dict[Module, Future[None]] = {}
        self._fetched = 0
        self._bytes = 0
        self._failures = 0
        self._closed = False

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Start no further download, and wait for those at work; an error ends them."""
        self._closed = True
        if error is not None:
            end_calls()
        self._pool.shutdown(cancel_futures=True)

    def begin(self, directory: Path) -> Sequence[Future[None]]:
        """Begin with what the go.mod in `directory` requires and nobody has; return what ends with each.

        None of them raises: what could not be had the build misses, and its error says why. Raise
        LabError if the go.mod cannot be read.
        """
        cache = Path(run_go("env", "GOMODCACHE", directory=directory).strip())
        lacking = [one for one in required(directory) if not _there(one, cache)]
        for one in lacking:
            if one not in self._begun:
                self._begun[one] = self._pool.submit(self._fetch, one, directory)
        return [self._begun[one] for one in lacking]

    def __str__(self) -> str:
        """Return how far they are; empty if there is nothing to fetch."""
        if not self._begun:
            return ""
        with self._lock:
            done, size = self._fetched, self._bytes
        return f"{done} of {len(self._begun)} modules, {size / 1e6:.0f} MB"

    def _fetch(self, module: Module, directory: Path) -> None:
        # A machine without a network shall not wait for hundreds; the builds may do without some.
        if self._closed or self._failures >= AT_ONCE:
            return
        try:
            archive = Path(download(str(module), directory=directory)["Zip"])
            size = archive.stat().st_size
        except (LabError, OSError):
            with self._lock:
                self._failures += 1
            return
        with self._lock:
            self._fetched += 1
            self._bytes += size


def required(directory: Path) -> list[Module]:
    """Return the modules that the go.mod in `directory` requires, as it replaces them. Raise LabError."""
    said: dict[str, Any] = json.loads(run_go("mod", "edit", "-json", directory=directory))
    instead = {one["Old"]["Path"]: one["New"] for one in said.get("Replace") or ()}
    return list(_modules(instead.get(one["Path"], one) for one in said.get("Require") or ()))


def _modules(found: Iterable[dict[str, str]]) -> Iterable[Module]:
    # A folder of this machine has no version.
    return (Module(one["Path"], one["Version"]) for one in found if "Version" in one)


def _there(module: Module, cache: Path) -> bool:
    # Go writes the archive's checksum last.
    return module.in_cache(cache).with_suffix(".ziphash").exists()


def _escaped(text: str) -> str:
    # Some file systems do not tell A from a.
    return re.sub("[A-Z]", lambda letter: f"!{letter[0].lower()}", text)
