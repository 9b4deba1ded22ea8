"""A module that is built with a file of ours: copied beside the one that needs it."""

from pathlib import Path

from lab.modules import COMPLETED, PINNED, complete

LACKING = COMPLETED["volcano"]


def test_a_read_only_module_gets_its_file(tmp_path: Path) -> None:
    source, place = tmp_path / "source", tmp_path / "place"
    folder = source / LACKING.folder
    folder.mkdir(parents=True)
    (folder / "labels.go").write_text("package v1beta1\n")
    (folder / "labels.go").chmod(0o444)
    for each in (folder, *folder.parents[: len(Path(LACKING.folder).parts)]):
        each.chmod(0o555)
    place.mkdir()
    complete(LACKING, PINNED / "volcano", source, place)
    copied = place / LACKING.name / LACKING.folder
    assert {each.name for each in copied.iterdir()} == {"labels.go", LACKING.file}
    assert all(each.stat().st_mode & 0o200 for each in place.rglob("*"))
    assert {each.name for each in place.iterdir()} == {"go.mod", "go.sum", LACKING.name}


def test_the_module_that_needs_it_points_to_the_copy() -> None:
    text = (PINNED / "volcano" / "go.mod").read_text()
    name, _, _ = LACKING.module.partition("@")
    assert f"{name} => ./{LACKING.name}\n" in text
