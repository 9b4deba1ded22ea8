"""Artifacts: made once, in order, and again when what they are made from has changed."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.images.artifacts import Artifact, Making, Store
from lab.images.tools import Tool

MISSING = Tool(program="no-such-program", package="some-package")


class Workshop:
    """Makes artifacts whose content names what they were made from, and remembers which it made."""

    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.folder = folder
        self.made: list[str] = []
        self.said: list[str] = []

    def artifact(
        self,
        name: str,
        *needs: Artifact,
        recipe: str = "",
        tools: tuple[Tool, ...] = (),
        make: Callable[[Making], None] | None = None,
    ) -> Artifact:
        def write(making: Making) -> None:
            self.made.append(name)
            making.target.write_text(f"{name}{recipe}({','.join(path.read_text() for path in making.needs.values())})")

        return Artifact(
            name=name,
            doing=f"making {name}",
            seconds=90,
            recipe=(recipe,),
            make=make or write,
            needs=needs,
            tools=tools,
        )

    def ensure(self, artifact: Artifact) -> str:
        return self.store.ensure(artifact, self.said.append).read_text()


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "images")


def test_needs_are_made_first_and_everything_once(workshop: Workshop) -> None:
    base = workshop.artifact("base")
    whole = workshop.artifact("whole", workshop.artifact("part", base), base)
    assert workshop.ensure(whole) == "whole(part(base()),base())"
    assert workshop.ensure(whole) == "whole(part(base()),base())"
    assert workshop.made == ["base", "part", "whole"]
    assert workshop.said[1] == "making part, 2 of 3 (about 3 min left)"


def test_a_changed_recipe_makes_what_depends_on_it_anew_and_removes_the_old(workshop: Workshop) -> None:
    def whole(recipe: str) -> Artifact:
        return workshop.artifact("whole", workshop.artifact("part", recipe=recipe), workshop.artifact("other"))

    workshop.ensure(whole("1"))
    assert workshop.ensure(whole("2")) == "whole(part2(),other())"
    assert workshop.made == ["part", "other", "whole", "part", "whole"]
    assert sorted(path.name.rpartition("-")[0] for path in workshop.folder.glob("*.tar")) == ["other", "part", "whole"]


def test_after_a_failure_only_the_rest_is_made(workshop: Workshop) -> None:
    def fail(making: Making) -> None:
        making.target.write_text("half")
        raise LabError("no space left")

    part = workshop.artifact("part")
    with pytest.raises(LabError, match="no space left"):
        workshop.ensure(workshop.artifact("whole", part, make=fail))
    assert workshop.ensure(workshop.artifact("whole", part)) == "whole(part())"
    assert workshop.made == ["part", "whole"]
    assert not list(workshop.folder.glob(".making-*"))


def test_what_a_killed_build_left_is_removed(workshop: Workshop) -> None:
    left = workshop.folder / ".making-killed" / "work"
    left.mkdir(parents=True)
    workshop.ensure(workshop.artifact("part"))
    assert not left.exists()


def test_progress_within_an_artifact_is_told_with_what_is_made(workshop: Workshop) -> None:
    def make(making: Making) -> None:
        making.say("half of it")
        making.target.touch()

    workshop.ensure(workshop.artifact("part", make=make))
    assert workshop.said[-1] == "making part, 1 of 1 (about 2 min left): half of it"


def test_missing_programs_are_told_before_anything_is_made(workshop: Workshop) -> None:
    whole = workshop.artifact("whole", workshop.artifact("part"), tools=(MISSING,))
    with pytest.raises(LabError, match="apt-get install --no-install-recommends some-package"):
        workshop.ensure(whole)
    assert workshop.made == []


def test_two_at_once_make_it_once(workshop: Workshop) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(making: Making) -> None:
        begun.set()
        assert go_on.wait(30)
        workshop.made.append("part")
        making.target.write_text("part")

    part = workshop.artifact("part", make=slowly)
    first = threading.Thread(target=workshop.ensure, args=(part,))
    second = threading.Thread(target=workshop.ensure, args=(part,))
    first.start()
    assert begun.wait(30)
    second.start()
    while "waiting for another process that builds images" not in workshop.said:
        second.join(0.01)
    go_on.set()
    first.join()
    second.join()
    assert workshop.made == ["part"]
