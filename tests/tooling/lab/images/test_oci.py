"""Images as OCI archives, which `docker load` takes as well."""

import gzip
import hashlib
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from lab.images.archive import File, Folder, Link, tree, write_layer
from lab.images.oci import Settings, digest, write_image

SETTINGS = Settings(
    entrypoint=("run",),
    command=("it",),
    environment={"A": "1"},
    user="65532:65532",
    labels={"title": "run"},
)


@pytest.fixture
def layers(tmp_path: Path) -> list[Path]:
    found = [tmp_path / "low.tar", tmp_path / "high.tar"]
    for layer in found:
        write_layer(layer, {layer.name: File(content=b"content")})
    return found


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        files = {entry.name: tar.extractfile(entry) for entry in tar}
        return {name: file.read() for name, file in files.items() if file is not None}


def follow(found: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    data = found[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert descriptor["size"] == len(data)
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
    return data


@pytest.mark.parametrize("compress", [False, True])
def test_an_image_names_its_layers_by_their_digests(
    layers: list[Path], tmp_path: Path, compress: bool
) -> None:
    archive, again = tmp_path / "image.tar", tmp_path / "again.tar"
    write_image(archive, reference="name:tag", layers=layers, settings=SETTINGS, compress=compress)
    write_image(again, reference="name:tag", layers=layers, settings=SETTINGS, compress=compress)
    assert archive.read_bytes() == again.read_bytes()
    found = read(archive)
    [described] = json.loads(found["index.json"])["manifests"]
    manifest = json.loads(follow(found, described))
    configuration = json.loads(follow(found, manifest["config"]))
    stored = [follow(found, layer) for layer in manifest["layers"]]
    plain = [layer.read_bytes() for layer in layers]
    assert [gzip.decompress(data) if compress else data for data in stored] == plain
    assert all(layer["mediaType"].endswith("+gzip") is compress for layer in manifest["layers"])
    assert configuration["rootfs"]["diff_ids"] == [
        f"sha256:{hashlib.sha256(data).hexdigest()}" for data in plain
    ]
    assert configuration["config"] == {
        "Entrypoint": ["run"],
        "Cmd": ["it"],
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "A=1"],
        "User": "65532:65532",
        "Labels": {"title": "run"},
    }
    assert digest(archive) == described["digest"]
    assert set(described["annotations"].values()) == {"docker.io/library/name:tag"}
    [saved] = json.loads(found["manifest.json"])  # for Docker
    assert (saved["RepoTags"], found[saved["Config"]]) == (
        ["name:tag"],
        follow(found, manifest["config"]),
    )
    assert [found[name] for name in saved["Layers"]] == stored


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
