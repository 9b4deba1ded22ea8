"""A credential plugin is asked again before its token expires, and not before."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mpijob_elastic.kube.client import connect
from tests.faults.kubeconfig import write_plain

PLUGIN = """\
#!/bin/sh
echo asked >> {asked}
cat <<END
{{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
  "status": {{"token": "token-$(grep -c . {asked})", "expirationTimestamp": "{until}"}}}}
END
"""


def kubeconfig(folder: Path, *, lasts: timedelta) -> Path:
    """A kubeconfig with a plugin that numbers its tokens."""
    until = (datetime.now(UTC) + lasts).strftime("%Y-%m-%dT%H:%M:%SZ")
    plugin = folder / "plugin"
    plugin.write_text(PLUGIN.format(asked=folder / "asked", until=until))
    plugin.chmod(0o700)
    file = folder / "kubeconfig"
    write_plain(file, "http://127.0.0.1:1")
    content = json.loads(file.read_text())
    run = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": str(plugin),
        "interactiveMode": "Never",
    }
    content["users"][0]["user"] = {"exec": run}
    file.write_text(json.dumps(content))
    return file


@pytest.mark.parametrize(
    ("lasts", "tokens"),
    [
        pytest.param(timedelta(hours=1), ["token-1", "token-1"], id="it lasts"),
        pytest.param(timedelta(minutes=1), ["token-2", "token-3"], id="it is about to expire"),
    ],
)
async def test_a_token_is_renewed_when_it_is_about_to_expire(
    tmp_path: Path, lasts: timedelta, tokens: list[str]
) -> None:
    async with await connect(
        user_agent="test", kubeconfig=kubeconfig(tmp_path, lasts=lasts)
    ) as client:
        found = [(await client.credentials())["Authorization"] for _ in tokens]
    assert found == [f"Bearer {token}" for token in tokens]


async def test_requests_at_once_ask_the_plugin_one_after_another(tmp_path: Path) -> None:
    async with await connect(
        user_agent="test", kubeconfig=kubeconfig(tmp_path, lasts=timedelta(minutes=1))
    ) as client:
        found = await asyncio.gather(*(client.credentials() for _ in range(3)))
    assert sorted(one["Authorization"] for one in found) == [
        f"Bearer token-{number}" for number in (2, 3, 4)
    ]
