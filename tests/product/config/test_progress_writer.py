"""docs/examples/progress.py: the line that it writes after each step, and that it never ends or slows a training."""

import importlib.util
import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpijob_elastic.model.progress import LONGEST, PATH, VARIABLE, ProgressLine, parse
from tests.builders import NOW

WRITER = Path(__file__).parents[3] / "docs" / "examples" / "progress.py"


def loaded() -> Any:
    """Return the module of the writer, as a program that imports it has it."""
    spec = importlib.util.spec_from_file_location("progress", WRITER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Clock:
    """The time, which a test moves."""

    def __init__(self) -> None:
        self.now = NOW
        self.ran = 0.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.ran

    def passes(self, seconds: float) -> None:
        self.now += seconds
        self.ran += max(0.0, seconds)


class Rank:
    """A rank that trains in a pod of its own: each word is what it does next.

    `7` is step 7, which takes a second; `7:60` takes 60 s. `begin`, `saved`: these calls. `restart`:
    another process goes on. `wait:9` lets time pass, `back:9` sets the clock back.
    """

    def __init__(self, file: Path) -> None:
        self.module = loaded()
        self.file, self.clock = file, Clock()
        self.module.FILE, self.module.time = file, self.clock
        self.restart()

    def restart(self) -> None:
        self.progress = self.module.Progress(4000)
        self.progress.begin()

    def does(self, words: str) -> None:
        for word in words.split():
            name, _, amount = word.partition(":")
            self._does(name, float(amount or 1))

    def _does(self, name: str, amount: float) -> None:
        other: dict[str, Callable[[], None]] = {
            "begin": self.progress.begin,
            "saved": self.progress.saved,
            "restart": self.restart,
            "wait": lambda: self.clock.passes(amount),
            "back": lambda: self.clock.passes(-amount),
        }
        if name in other:
            other[name]()
        else:
            self.step(int(name), amount)

    def step(self, number: int, seconds: float = 1.0, own: float = 0.25) -> None:
        began = self.clock.now
        self.clock.passes(seconds)
        self.progress.step(number, samples=96, ranks=3, began=began, own=own)

    def line(self) -> ProgressLine:
        text = self.file.read_text()
        assert text.endswith("\n")
        assert len(text) <= LONGEST
        found = parse(f"alive {text.strip()}", asked_at=self.clock.now)
        assert found, text
        return found


@pytest.fixture
def rank(tmp_path: Path) -> Rank:
    return Rank(tmp_path / "line")


def test_each_field_of_the_line(rank: Rank) -> None:
    rank.does("wait:10 41 42 saved 43")
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert rank.file.read_text().split()[:2] == ["v1", f"{os.getpid()}"]
    assert rank.line() == ProgressLine(
        asked_at=NOW + 13,
        alive=True,
        process=ticks,
        step=43,
        samples=96,
        ranks=3,
        at=NOW + 13,
        step_ms=1000,
        own_ms=250,
        first=NOW + 10,
        since=NOW + 10,
        kept=2,
        repeated=0,
        again=0,
        open=1,
        total=4000,
    )


@pytest.mark.parametrize(
    ("words", "sums"),
    [
        pytest.param("1 2 3", "kept 0 repeated 0 again 0 open 3", id="nothing is saved"),
        pytest.param("1 2 saved 3", "kept 2 repeated 0 again 0 open 1", id="two are saved"),
        pytest.param(
            "1 2 saved 3 wait:40 begin 4",
            "kept 2 repeated 0 again 0 open 2",
            id="a ring forms, and no step is lost",
        ),
        pytest.param(
            "1 2 saved 3 4 wait:40 restart 9",
            "kept 2 repeated 2 again 0 open 1",
            id="a killed rank comes back when the others have gone on",
        ),
        pytest.param(
            "1 2 saved 3 4 wait:40 restart 5 saved 16",
            "kept 5 repeated 0 again 0 open 1",
            id="another process goes on, and then not each step is told",
        ),
        pytest.param(
            "1 2 saved 3 4 wait:40 begin 3",
            "kept 2 repeated 2 again 2 open 1",
            id="a step fails, and what was not saved is lost",
        ),
        pytest.param(
            "1 2 saved 3 4 3 4 5 saved 4",
            "kept 5 repeated 2 again 4 open 1",
            id="what was saved stays kept, even if it is done again",
        ),
        pytest.param(
            "1 2 saved 3 wait:20 restart 3 4",
            "kept 2 repeated 1 again 1 open 2",
            id="another process does a lost step again",
        ),
        pytest.param(
            "1 2 saved restart 3 saved",
            "kept 3 repeated 0 again 0 open 0",
            id="another process goes on",
        ),
        pytest.param(
            "1 2 3 4 5:60", "kept 0 repeated 0 again 0 open 5", id="a stall is no training"
        ),
        pytest.param(
            "1:1 2:2 3:3 4:4", "kept 0 repeated 0 again 0 open 10", id="steps that vary count"
        ),
        pytest.param(
            "1:1 2:2 3:3 4:5",
            "kept 0 repeated 0 again 0 open 11",
            id="no more than the median, 2.5 s, and thrice the usual distance from it, 1 s",
        ),
        pytest.param("1:1 2:2 3:3 4:6", "kept 0 repeated 0 again 0 open 8.5", id="more than that"),
        pytest.param(
            "1 2 3 4 begin 5:3 6:3",
            "kept 0 repeated 0 again 0 open 10",
            id="another ring has another usual time",
        ),
        pytest.param(
            "1 2 back:1 3 4",
            "kept 0 repeated 0 again 0 open 4",
            id="the clock goes back between two steps",
        ),
        pytest.param(
            "1 2 3:-3600 4",
            "kept 0 repeated 0 again 0 open 3",
            id="the clock goes back in a step, by more than the pod's age",
        ),
    ],
)
def test_what_is_kept_and_what_is_repeated(rank: Rank, words: str, sums: str) -> None:
    rank.does(words)
    line = rank.line()
    assert sums == (
        f"kept {line.kept:g} repeated {line.repeated:g} again {line.again} open {line.open:g}"
    )
    assert line.step == int(words.replace("saved", "").split()[-1].partition(":")[0])


def test_the_first_step_of_the_pod_and_of_the_ring(rank: Rank) -> None:
    rank.does("1 2 wait:10 begin wait:5 3")
    assert (rank.line().first, rank.line().since) == (NOW, NOW + 17)
    rank.does("wait:10 restart 4 5")
    assert (rank.line().first, rank.line().since) == (NOW, NOW + 28)


def test_times_are_the_median_of_the_last_32_steps_of_the_ring(rank: Rank) -> None:
    for number in range(1, 41):
        rank.step(number, seconds=number, own=number / 2)
    assert (rank.line().step_ms, rank.line().own_ms) == (24_500, 12_250)
    rank.does("begin 41:2")
    assert (rank.line().step_ms, rank.line().own_ms) == (2000, 250)


def test_short_steps_are_written_ten_times_a_second_and_a_save_at_once(rank: Rank) -> None:
    seen = set[int]()
    for number in range(1, 101):
        rank.step(number, seconds=0.01)
        seen.add(rank.line().step)
    assert len(seen) == 10
    rank.does("101:0.01 saved")
    assert rank.line().step == 101
    assert rank.line().kept == pytest.approx(1.01)


def test_other_ranks_write_nothing(rank: Rank) -> None:
    rank.progress = rank.module.Progress(4000, writes=False)
    rank.does("begin 1 saved 2")
    assert not rank.file.exists()


def test_nothing_is_written_where_the_process_is_unknown(
    rank: Rank, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rank.module, "_this_process", lambda: "")
    rank.does("restart 1 saved")
    assert not rank.file.exists()


def test_a_save_before_the_first_step_tells_nothing(rank: Rank) -> None:
    rank.does("saved")
    assert not rank.file.exists()


def test_the_variable_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Path(PATH) == loaded().FILE
    for value, file in (("", PATH), ("/x/line", "/x/line")):
        monkeypatch.setenv(VARIABLE, value)
        assert Path(file) == loaded().FILE


HONEST = f"v1 7 100 9 96 3 {NOW:.3f} 10.0 5.0 {NOW - 50:.3f} {NOW - 50:.3f} 4.000 2.000 5 1.000 0\n"


@pytest.mark.parametrize(
    ("old", "first", "again"),
    [
        pytest.param(HONEST, NOW - 50, 14, id="an honest line"),
        pytest.param(HONEST.strip(), NOW - 50, 14, id="no end of the line"),
        pytest.param("", NOW, 0, id="empty"),
        pytest.param("rubbish\n", NOW, 0, id="rubbish"),
        pytest.param(HONEST.replace("v1", "v2"), NOW, 0, id="another form"),
        pytest.param(HONEST[: len(HONEST) // 2], NOW, 0, id="half a line"),
        pytest.param(f"{HONEST.strip()} more\n", NOW, 0, id="a word more"),
        pytest.param(HONEST.replace(" 9 ", " nine "), NOW, 0, id="no number"),
        pytest.param(HONEST.replace(" 9 ", " -9 "), NOW, 0, id="a negative number"),
        pytest.param(HONEST.replace("4.000", "nan"), NOW, 0, id="no number that is one to Python"),
        pytest.param(HONEST.replace("4.000", "inf"), NOW, 0, id="no end"),
        pytest.param(HONEST.replace(" 5 ", f" {'9' * 100} "), NOW, 0, id="a long number"),
        pytest.param(HONEST.replace(f"{NOW - 50:.3f}", f"{NOW + 9:.3f}"), NOW, 0, id="the future"),
        pytest.param("v1 " * 100_000, NOW, 0, id="a large file"),
        pytest.param("\0\udcff\udc80 v1", NOW, 0, id="bytes that are no text"),
    ],
)
def test_an_old_file_is_taken_over_if_it_is_ours(
    rank: Rank, old: str, first: float, again: int
) -> None:
    rank.file.write_bytes(old.encode(errors="surrogateescape"))
    rank.does("restart 1")
    line = rank.line()
    assert (line.first, line.again, line.open) == (first, again, 1)


def _is_a_directory(file: Path) -> None:
    file.mkdir()


def _is_a_pipe(file: Path) -> None:
    os.mkfifo(file)


def _leads_nowhere(file: Path) -> None:
    file.symlink_to("/nowhere/line")


def _is_in_no_folder(file: Path) -> None:
    file.parent.rmdir()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("happens", [_is_a_directory, _is_a_pipe, _leads_nowhere, _is_in_no_folder])
def test_no_training_ends_over_what_is_in_the_place_of_the_file(
    tmp_path: Path, happens: Callable[[Path], None]
) -> None:
    (tmp_path / "shm").mkdir()
    file = tmp_path / "shm" / "line"
    happens(file)
    rank = Rank(file)
    rank.does("1 2 saved 3")
    can_replace = happens in (_is_a_pipe, _leads_nowhere)
    assert (file.exists() and stat.S_ISREG(file.lstat().st_mode)) == can_replace
    assert (rank.progress.kept, rank.progress.open) == (2, 1)


@contextmanager
def no_file_grows() -> Iterator[None]:
    """Let each write into a file fail, as on a full file system."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_file_system_leaves_the_last_line(rank: Rank) -> None:
    rank.does("1 saved")
    with no_file_grows():
        rank.does("2 saved 3")
    assert (rank.line().step, rank.line().kept) == (1, 1)
    rank.does("4")
    assert (rank.line().step, rank.line().kept, rank.line().open) == (4, 2, 2)


STEPS = st.tuples(st.integers(1, 10**6), st.floats(-1e4, 1e6, allow_nan=False), st.floats(0, 1e5))
ACTS = st.lists(st.sampled_from(["begin", "saved", "restart", "wait:5", "back:7"]) | STEPS)


@given(acts=ACTS)
def test_whatever_a_training_does_its_line_is_read(
    tmp_path_factory: pytest.TempPathFactory, acts: list[str | tuple[int, float, float]]
) -> None:
    rank = Rank(tmp_path_factory.mktemp("shm") / "line")
    rank.module.PAUSE = -1.0
    before, goes_back = (0.0, 0.0, 0.0), False
    for act in acts:
        if isinstance(act, str):
            goes_back |= act.startswith("back")
            rank.does(act)
        else:
            goes_back |= act[1] < 0
            rank.step(*act)
        if not rank.file.exists():
            continue
        line = rank.line()
        sums = line.kept, line.kept + line.repeated, line.done + line.repeated
        # A process that begins before the first step of its pod believes no old line.
        if not goes_back:
            assert all(new >= old - 0.01 for new, old in zip(sums, before, strict=True))
            assert sums[2] <= line.at - line.first + 0.01
        before = sums
