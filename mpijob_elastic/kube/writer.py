"""Writes to the API server: the methods of `ApiWriter` whose names end in `_object`.

Such names occur nowhere else, so a search for `_object(` finds every write. docs/writes.md lists
all writes, with the rights and the preconditions of each; a test compares that table with the code.
"""

from collections.abc import Mapping

from mpijob_elastic.kube.reader import ApiReader, Timeouts

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Query = Mapping[str, str] | None

# A write takes as long as admission takes: each webhook may take 10 s, or up to 30 s. The API
# server gives up after 34 s, so its answer always comes.
PATIENT = Timeouts(attempt=40.0)


class ApiWriter(ApiReader):
    """An `ApiReader` that also writes.

    Bodies are sent as JSON (bytes as they are); all methods raise as `get` does.
    """

    async def create_object(
        self, path: str, *, body: object, query: Query = None, limits: Timeouts = PATIENT
    ) -> bytes:
        """Create an object and return it; `path` is the path of its list."""
        return await self._call_api("POST", path, query=query, body=body, limits=limits)

    async def patch_object(
        self,
        path: str,
        *,
        body: object,
        content_type: str,
        query: Query = None,
        limits: Timeouts = PATIENT,
    ) -> bytes:
        """Change an object and return it; `content_type` is one of the patch types above."""
        return await self._call_api(
            "PATCH", path, query=query, body=body, content_type=content_type, limits=limits
        )

    async def apply_object(self, path: str, *, body: object, query: Query) -> bytes:
        """Apply an object on the server's side and return it; `query` names the field manager."""
        return await self._call_api(
            "PATCH", path, query=query, body=body, content_type=APPLY_PATCH, limits=PATIENT
        )

    async def delete_object(
        self,
        path: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        options: Mapping[str, object] | None = None,
        query: Query = None,
        limits: Timeouts = PATIENT,
    ) -> bytes:
        """Delete an object if it still has `uid` and `resource_version`, as far as they are given.

        options: more fields of DeleteOptions. Raises `errors.Conflict` if the object has changed.
        """
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value is not None}
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **(options or {})}
        if preconditions:
            body["preconditions"] = preconditions
        return await self._call_api("DELETE", path, query=query, body=body, limits=limits)
