"""What a plain kubeconfig gives without the library is what the library gives."""

import base64
import os
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.pki import Authority
from mpijob_elastic.kube import client, errors, in_cluster, kubeconfig
from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.plain_kubeconfig import plain_access, plain_context


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an authority, ca.crt, and a pair of a client, client.crt and client.key."""
    folder = tmp_path_factory.mktemp("files")
    Authority(folder, "ca", now=datetime.now(UTC)).issue("client", user="u")
    (folder / "empty").touch()
    return folder


def data(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()


def written(folder: Path, cluster: Mapping[str, Any], user: Mapping[str, Any], **more: Any) -> Path:
    content = {
        "clusters": [{"name": "c", "cluster": dict(cluster)}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
        **more,
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(content))
    return file


async def told(access: Access) -> tuple[object, ...]:
    tls = access.tls
    return (
        access.host,
        access.server_name,
        access.proxy,
        access.headers,
        await access.authorization(),
        *(tls.verify_mode, tls.check_hostname, tls.verify_flags, tls.options),
        *(tls.minimum_version, tls.maximum_version, tls.get_ca_certs()),
    )


HTTPS = {"server": "https://127.0.0.1:6443/"}
# What stands in a user or a cluster; a callable makes it of the folder.
USERS: list[Any] = [
    {},
    {"token": "t"},
    {"token": 12},
    {"token": ""},
    {"tokenFile": "ca.crt"},
    {"username": "a", "password": "b"},
    {"as": "another"},
    {"exec": {"command": "/no/such", "apiVersion": "client.authentication.k8s.io/v1"}},
    {"client-certificate": "client.crt", "client-key": "client.key"},
    {"client-certificate": "client.crt", "client-key": "client.key", "token": "t"},
    {"client-certificate": "client.crt"},
    {"client-certificate": "ca.crt", "client-key": "client.key"},
    lambda folder: {
        "client-certificate-data": data(folder / "client.crt"),
        "client-key-data": data(folder / "client.key"),
    },
    {"client-certificate-data": "no base64!", "client-key-data": "Tk9ORQ=="},
    {"client-certificate": "empty", "client-key": "empty"},
    {"client-certificate": "empty", "client-key": "empty", "token": "t"},
    {"client-certificate-data": "====", "client-key-data": "===="},
]
CLUSTERS: list[Any] = [
    HTTPS,
    {"server": "http://127.0.0.1:8080"},
    {"server": ""},
    {},
    {**HTTPS, "certificate-authority": "ca.crt"},
    {**HTTPS, "certificate-authority": "no.crt"},
    {**HTTPS, "certificate-authority": "ca.crt", "extensions": [{"name": "x"}]},
    {**HTTPS, "insecure-skip-tls-verify": True},
    {**HTTPS, "tls-server-name": "other", "certificate-authority": "ca.crt"},
    {**HTTPS, "proxy-url": "http://proxy:1"},
    lambda folder: {**HTTPS, "certificate-authority-data": data(folder / "ca.crt")},
    lambda folder: {
        **HTTPS,
        "certificate-authority": "no.crt",
        "certificate-authority-data": data(folder / "ca.crt"),
    },
    {**HTTPS, "certificate-authority-data": "Tk9ORQ=="},
    {**HTTPS, "certificate-authority": "empty"},
    {**HTTPS, "certificate-authority-data": ""},
    {**HTTPS, "certificate-authority-data": "===="},
]
MORE: list[dict[str, Any]] = [
    {},
    {"current-context": ""},
    {"current-context": "y"},
    {"users": []},
    {"users": None},
    {"contexts": "x"},
    {"contexts": [{"name": "x", "context": {"cluster": "c"}}]},
    {"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}] * 2},
    {"apiVersion": "v1", "kind": "Config", "preferences": {}},
]


@given(
    user=st.sampled_from(USERS),
    cluster=st.sampled_from(CLUSTERS),
    more=st.sampled_from(MORE),
    context=st.sampled_from([None, "x", "y"]),
)
async def test_what_is_plain_is_what_the_library_says(
    folder: Path, user: Any, cluster: Any, more: dict[str, Any], context: str | None
) -> None:
    user, cluster = (one(folder) if callable(one) else one for one in (user, cluster))
    file = str(written(folder, cluster, user, **more))
    plain = plain_access(file, context)
    if plain is not None:
        full = await kubeconfig.kubeconfig_access(file, context)
        assert await told(plain) == await told(full)
    chosen = plain_context(file, context)
    if chosen is not None:
        assert chosen.namespace == kubeconfig.namespace_of(file, context)
        assert chosen.name == kubeconfig.context_of(file, context)


@pytest.mark.parametrize("user", [USERS[0], USERS[1], USERS[8], USERS[9], USERS[12]])
@pytest.mark.parametrize(
    "cluster", [CLUSTERS[0], CLUSTERS[1], CLUSTERS[4], CLUSTERS[6], CLUSTERS[10]]
)
def test_usual_files_are_plain(folder: Path, user: Any, cluster: Any) -> None:
    user, cluster = (one(folder) if callable(one) else one for one in (user, cluster))
    assert plain_access(str(written(folder, cluster, user)), None) is not None


@pytest.mark.parametrize("text", ["", "a: [", "- 1", "\0", "contexts: {x: y}"])
def test_what_is_no_kubeconfig_is_left_to_the_library(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(text)
    assert plain_access(str(file), None) is None
    with pytest.raises(errors.Unconfigured):
        kubeconfig.namespace_of(str(file), None)


def test_a_client_shows_its_certificate(folder: Path) -> None:
    access = plain_access(str(written(folder, CLUSTERS[4], USERS[8])), None)
    assert access is not None
    assert access.tls.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize("cluster", CLUSTERS[-3:])
async def test_an_empty_authority_is_no_leave_to_trust_the_machines(
    folder: Path, cluster: Any
) -> None:
    assert plain_access(str(written(folder, cluster, USERS[1])), None) is None


@pytest.mark.parametrize("user", USERS[-3:])
async def test_an_empty_certificate_is_no_leave_to_be_anonymous(folder: Path, user: Any) -> None:
    assert plain_access(str(written(folder, CLUSTERS[4], user)), None) is None


def test_a_pipe_is_left_to_the_library_because_it_can_be_read_once() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as end:
        with os.fdopen(writing, "wb") as start:
            start.write(b"content")
        assert plain_context(f"/dev/fd/{reading}", None) is None
        assert end.read() == b"content"


# `exec` is left to the library.
@pytest.mark.parametrize("user", [USERS[1], USERS[7]])
@pytest.mark.parametrize("context", [None, "x"])
def test_the_current_context_has_a_name(folder: Path, user: Any, context: str | None) -> None:
    file = written(folder, HTTPS, user)
    assert client.lasting_context(kubeconfig=file, context=context) == "x"


def test_a_context_that_is_not_there_has_none(folder: Path) -> None:
    file = written(folder, HTTPS, USERS[1])
    with pytest.raises(errors.Unconfigured, match="no context y"):
        client.lasting_context(kubeconfig=file, context="y")


def test_a_pod_has_no_context(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(in_cluster.HOST, "10.0.0.1")
    assert client.lasting_context() is None


def test_a_pipe_is_not_read_again() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading), pytest.raises(errors.Unconfigured, match="write it to a file"):
        client.lasting_context(kubeconfig=Path(f"/dev/fd/{reading}"))


def test_several_files_and_none_are_left_to_the_library(folder: Path) -> None:
    file = written(folder, HTTPS, {"token": "t"})
    assert plain_access(f"{file}:{file}", None) is None
    assert plain_access("/no/such", None) is None
