"""The access of a pod: its variables, its files, the rotation of its token, and whom it trusts."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.pki import Authority, KeyPair
from mpijob_elastic.kube import errors, in_cluster
from mpijob_elastic.kube.access import Access
from mpijob_elastic.kube.client import connect
from mpijob_elastic.kube.in_cluster import READ_EVERY, TokenFile, in_cluster_access
from mpijob_elastic.kube.writer import ApiWriter

PODS = "/api/v1/namespaces/n/pods"
POD = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    (tmp_path / "of the cluster").mkdir()
    return Authority(tmp_path / "of the cluster", "ca", now=datetime.now(UTC))


@pytest.fixture
def folder(tmp_path: Path, authority: Authority) -> Path:
    """What a kubelet mounts."""
    (tmp_path / "token").write_text("first\n")
    (tmp_path / "ca.crt").write_bytes(authority.certificate.read_bytes())
    return tmp_path


@pytest.fixture
def server_keys(authority: Authority) -> KeyPair:
    return authority.issue("server", user="server", hosts=("127.0.0.1",))


@asynccontextmanager
async def tls_server(
    keys: KeyPair, *, host: str = "127.0.0.1"
) -> AsyncIterator[tuple[Mapping[str, str], list[bytes]]]:
    """Answer {} to every request; give the variables of a pod, and the heads of the requests."""
    heads = list[bytes]()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(keys.certificate, keys.key)
    async with await asyncio.start_server(answer, host, 0, ssl=tls) as server:
        port = str(server.sockets[0].getsockname()[1])
        yield {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}, heads


def client_of(access: Access) -> ApiWriter:
    return ApiWriter(access, user_agent="test")


@pytest.mark.parametrize(
    ("host", "url"),
    [
        pytest.param("10.96.0.1", "https://10.96.0.1:6443", id="IPv4"),
        pytest.param("fd00::1", "https://[fd00::1]:6443", id="IPv6"),
        pytest.param("kubernetes.default.svc", "https://kubernetes.default.svc:6443", id="a name"),
    ],
)
def test_the_address_is_that_of_the_environment(folder: Path, host: str, url: str) -> None:
    assert in_cluster_access({**POD, "KUBERNETES_SERVICE_HOST": host}, folder).host == url


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"KUBERNETES_SERVICE_PORT": ""}, "KUBERNETES_SERVICE_PORT is not set"),
        pytest.param({"KUBERNETES_SERVICE_HOST": ""}, "KUBERNETES_SERVICE_HOST is not set"),
    ],
)
def test_a_missing_variable_is_named(folder: Path, changes: Mapping[str, str], said: str) -> None:
    with pytest.raises(errors.Unconfigured, match=said):
        in_cluster_access({**POD, **changes}, folder)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("token", None, "token cannot be read: No such file or directory"),
        ("token", b"", "token holds no token"),
        ("token", b" \n", "token holds no token"),
        ("token", b"\xff", "token holds no token"),
        ("token", b"one\ntwo", "token holds no token"),
        ("ca.crt", None, "ca.crt cannot be read: No such file or directory"),
        ("ca.crt", b"", "ca.crt holds no certificate"),
        ("ca.crt", b"some words", "ca.crt holds no certificate"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    folder: Path, name: str, content: bytes | None, said: str
) -> None:
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(errors.Unconfigured) as caught:
        in_cluster_access(POD, folder)
    complaint = str(caught.value)
    assert complaint.startswith(f"no usable cluster configuration in this pod: {folder}/{name} ")
    assert said in complaint
    assert "\n" not in complaint


async def test_a_rotated_token_is_used_within_a_minute(tmp_path: Path) -> None:
    now, file = [1000.0], tmp_path / "token"
    file.write_text("first\n")
    token = TokenFile(file, clock=lambda: now[0])
    file.write_text("second")
    now[0] += READ_EVERY - 0.001
    assert await token.authorization() == "Bearer first"
    now[0] += 0.001
    assert await token.authorization() == "Bearer second"
    file.write_text("third")
    assert await token.authorization() == "Bearer second"
    now[0] += READ_EVERY
    assert await token.authorization() == "Bearer third"


@pytest.mark.parametrize("content", [None, b"", b"\xff"])
async def test_the_last_token_is_used_until_a_new_one_can_be_read(
    tmp_path: Path, content: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    now, file = [1000.0], tmp_path / "token"
    file.write_text("first")
    token = TokenFile(file, clock=lambda: now[0])
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    now[0] += READ_EVERY
    for _ in range(3):
        assert await token.authorization() == "Bearer first"
    [said] = caplog.messages
    assert said.startswith(f"the last token is used on: {file} ")
    file.write_text("second")
    assert await token.authorization() == "Bearer second"


async def test_the_server_of_the_cluster_gets_the_token(folder: Path, server_keys: KeyPair) -> None:
    async with (
        tls_server(server_keys) as (environment, heads),
        client_of(in_cluster_access(environment, folder)) as client,
    ):
        assert await client.get(PODS) == b"{}"
    [head] = heads
    assert b"\r\nAuthorization: Bearer first\r\n" in head


async def test_an_ipv6_server_is_reached(folder: Path, authority: Authority) -> None:
    keys = authority.issue("six", user="server", hosts=("::1",))
    try:
        async with (
            tls_server(keys, host="::1") as (environment, _),
            client_of(in_cluster_access(environment, folder)) as client,
        ):
            assert await client.get(PODS) == b"{}"
    except OSError:
        pytest.skip("this machine has no IPv6")


@pytest.mark.parametrize(
    ("hosts", "same", "said"),
    [
        pytest.param(("127.0.0.1",), False, "CERTIFICATE_VERIFY_FAILED", id="another authority"),
        pytest.param((), True, "CERTIFICATE_VERIFY_FAILED", id="no server"),
    ],
)
async def test_another_server_gets_no_token(
    tmp_path: Path,
    folder: Path,
    authority: Authority,
    hosts: tuple[str, ...],
    same: bool,
    said: str,
) -> None:
    other = authority
    if not same:
        (tmp_path / "of others").mkdir()
        other = Authority(tmp_path / "of others", "ca", now=datetime.now(UTC))
    keys = other.issue("server", user="server", hosts=hosts)
    async with (
        tls_server(keys) as (environment, heads),
        client_of(in_cluster_access(environment, folder)) as client,
    ):
        with pytest.raises(errors.Unreachable, match=said):
            await client.get(PODS)
    assert heads == []


async def test_a_server_of_another_name_gets_no_token(folder: Path, server_keys: KeyPair) -> None:
    async with (
        tls_server(server_keys, host="127.0.0.2") as (environment, heads),
        client_of(in_cluster_access(environment, folder)) as client,
    ):
        with pytest.raises(errors.Unreachable, match="IP address mismatch"):
            await client.get(PODS)
    assert heads == []


def test_only_the_authorities_of_the_cluster_are_trusted(folder: Path) -> None:
    tls = in_cluster_access(POD, folder).tls
    assert tls.verify_mode is ssl.CERT_REQUIRED
    assert tls.check_hostname
    assert tls.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert len(tls.get_ca_certs()) == 1


async def test_a_pod_connects_with_its_files_and_by_the_proxy_of_its_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_cluster, "SERVICE_ACCOUNT", folder)
    for name, value in POD.items():
        monkeypatch.setenv(name, value)
    async with await connect(user_agent="test") as client:
        assert client.host == "https://127.0.0.1:6443"
        assert await client.credentials() == {"Authorization": "Bearer first"}
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("HTTPS_PROXY", "http://[proxy.example")
    with pytest.raises(errors.Unconfigured, match="in this pod: Invalid IPv6 URL"):
        await connect(user_agent="test")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://proxy.example")
    with pytest.raises(errors.Unconfigured, match="in this pod: a proxy must be http://HOST:PORT"):
        await connect(user_agent="test")


async def test_a_kubeconfig_that_is_given_counts_in_a_pod_too(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    with pytest.raises(errors.Unconfigured, match=f"in {folder}/kubeconfig: "):
        await connect(user_agent="test", kubeconfig=folder / "kubeconfig")
    monkeypatch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
    with pytest.raises(errors.Unconfigured, match=f"in {folder}/kubeconfig: "):
        await connect(user_agent="test", context="other")
