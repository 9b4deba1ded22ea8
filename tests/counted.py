"""Work that can be counted: how often what is called, and how often texts are compared, whatever the machine."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import mpijob_elastic

ROOT = str(Path(mpijob_elastic.__file__).parent)


class Name(str):
    """A text whose comparisons are counted: to find it in a tuple takes many, in a set one."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, other) is True


@contextmanager
def calls() -> Iterator[Counter[str]]:
    """Count calls in Python during the block by the function's name; `__eq__` is that of a `Name` or a dataclass."""
    counted = Counter[str]()

    def profile(frame: FrameType, event: str, _: object) -> None:
        counted[frame.f_code.co_name] += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def entered(run: Callable[[], object]) -> list[str]:
    """Return the file of each call into a function of the product; comprehensions do not count."""
    files: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(ROOT)
            and not code.co_name.startswith("<")
        ):
            files.append(code.co_filename)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return files
