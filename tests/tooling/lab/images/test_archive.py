"""Layers: the same bytes from the same content."""

import os
import tarfile
from pathlib import Path

from lab.images.archive import File, Folder, Link, tree, write_layer


def test_a_layer_holds_files_links_and_the_folders_above_them(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"#!/bin/sh\n")
    entries: dict[str, File | Link] = {
        "usr/bin/program": File(content=program, mode=0o755),
        "etc/text": File(content=b"x"),
        "sh": Link("a"),
    }
    write_layer(tmp_path / "layer.tar", entries)
    with tarfile.open(tmp_path / "layer.tar") as tar:
        found = {one.name: (one.isdir(), oct(one.mode), one.linkname) for one in tar}
        content = tar.extractfile("usr/bin/program")
        assert content is not None
        assert content.read() == b"#!/bin/sh\n"
    assert found == {
        "etc": (True, "0o755", ""),
        "usr": (True, "0o755", ""),
        "usr/bin": (True, "0o755", ""),
        "usr/bin/program": (False, "0o755", ""),
        "etc/text": (False, "0o644", ""),
        "sh": (False, "0o777", "a"),
    }


def test_a_layer_is_the_same_whenever_it_is_written(tmp_path: Path) -> None:
    for name in ("one", "other"):
        write_layer(tmp_path / name, {"a/b": File(content=b"1"), "a/c": File(content=b"2")})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_a_folder_becomes_the_same_layer_whoever_made_it(tmp_path: Path) -> None:
    for name, umask, moment in (("one", 0o022, 1), ("other", 0o077, 2)):
        before = os.umask(umask)
        program = tmp_path / name / "usr" / "bin" / "program"
        program.parent.mkdir(parents=True)
        program.write_text("#!")
        program.chmod(0o755 & ~umask)
        (tmp_path / name / "sh").symlink_to("/usr/bin/program")
        (tmp_path / name / "tmp").mkdir()
        (tmp_path / name / "tmp").chmod(0o1777)
        os.utime(program, (moment, moment))
        os.umask(before)
        write_layer(tmp_path / f"{name}.tar", tree(tmp_path / name))
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "other.tar").read_bytes()
    entries = tree(tmp_path / "one")
    assert entries["tmp"] == Folder(mode=0o1777)
    assert entries["sh"] == Link("/usr/bin/program")
    assert entries["usr/bin/program"] == File(content=tmp_path / "one/usr/bin/program", mode=0o755)


def test_of_a_folder_only_the_part_asked_for_is_taken(tmp_path: Path) -> None:
    for name in ("opt/program", "usr/lib/other"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert list(tree(tmp_path, below="opt")) == ["opt/program"]
