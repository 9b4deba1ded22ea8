"""Images as `docker save` writes them."""

import hashlib
import json
import tarfile
from pathlib import Path

from lab.images.archive import File, Link, Settings, write_image, write_layer


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


def test_an_image_names_its_layers_by_their_digests(tmp_path: Path) -> None:
    layers = [tmp_path / "low.tar", tmp_path / "high.tar"]
    for layer in layers:
        write_layer(layer, {layer.name: File(content=b"")})
    settings = Settings(command=("run", "it"), environment={"A": "1"})
    write_image(tmp_path / "image.tar", reference="name:tag", layers=layers, settings=settings)
    with tarfile.open(tmp_path / "image.tar") as tar:
        read = {one.name: _read(tar, one.name) for one in tar}
    [manifest] = json.loads(read["manifest.json"])
    configuration = json.loads(read[manifest["Config"]])
    digests = [hashlib.sha256(layer.read_bytes()).hexdigest() for layer in layers]
    assert manifest["RepoTags"] == ["name:tag"]
    assert [read[name] for name in manifest["Layers"]] == [layer.read_bytes() for layer in layers]
    assert configuration["rootfs"]["diff_ids"] == [f"sha256:{digest}" for digest in digests]
    assert manifest["Config"] == f"{hashlib.sha256(read[manifest['Config']]).hexdigest()}.json"
    assert configuration["config"]["Cmd"] == ["run", "it"]
    assert configuration["config"]["Env"][0].startswith("PATH=/usr/local/sbin:")
    assert configuration["config"]["Env"][1] == "A=1"


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()
