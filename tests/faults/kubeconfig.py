"""A kubeconfig for a server that speaks plain HTTP and asks for no credentials."""

import json
from pathlib import Path


def write_plain(path: Path, url: str) -> None:
    """Write it; JSON is YAML."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "plain", "cluster": {"server": url}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "plain", "context": {"cluster": "plain", "user": "nobody"}}],
        "current-context": "plain",
    }
    path.write_text(json.dumps(content))
