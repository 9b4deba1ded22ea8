"""An API server that does nothing but exec, over TLS: in each worker it says what the worker's name asks for."""

import datetime as dt
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from lab.pki import LOOPBACK, Authority
from mpijob_elastic.kube.exec import PROTOCOLS

_STDOUT, _STATUS = b"\x01", b"\x03"
_SUCCESS = json.dumps({"status": "Success"}).encode()


@asynccontextmanager
async def serving(answers: Mapping[str, bytes], folder: Path) -> AsyncIterator[Path]:
    """Serve during the block, with what is said by the begin of a worker's name; return a kubeconfig."""

    async def say(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=PROTOCOLS[:1])
        await socket.prepare(request)
        answer = request.match_info["pod"].partition("-")[0]
        await socket.send_bytes(_STDOUT + answers[answer])
        await socket.send_bytes(_STATUS + _SUCCESS)
        await socket.close()
        return socket

    authority = Authority(folder, "authority", now=dt.datetime.now(dt.UTC))
    pair = authority.issue("server", user="server", hosts=(LOOPBACK,))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/exec", say)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, LOOPBACK, 0, ssl_context=context)
    await site.start()
    [(_, port)] = runner.addresses
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(json.dumps(_kubeconfig(port, authority.certificate)))
    try:
        yield kubeconfig
    finally:
        await runner.cleanup()


def _kubeconfig(port: int, authority: Path) -> dict[str, object]:
    cluster = {"server": f"https://{LOOPBACK}:{port}", "certificate-authority": str(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": "a"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "current-context": "it",
    }
