"""AdmissionReview v1 on the wire: what a request holds and what an answer says.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#request
The API server does not authenticate itself to webhooks, so every body is treated as hostile: it is decoded into typed
structs, the objects inside stay bytes until a handler decodes the few fields it reads, and whatever does not fit is
`Malformed` with a message that says where.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from webhook.rules.json_patch import Patch

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
CREATE = "CREATE"
UPDATE = "UPDATE"
# The API server cuts longer ones (https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#response).
LONGEST_WARNING = 256


class Malformed(ValueError):
    """The body is no AdmissionReview we can answer; the text is for the caller."""


class GroupVersionKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind; `group` is "" for the core group."""

    group: str = ""
    version: str
    kind: str


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One admission request. `kind` is the one our rules name, also where the caller used another version of it."""

    uid: str
    kind: GroupVersionKind
    operation: str
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    dry_run: bool = False
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    request: Request | None = None


_decoder = msgspec.json.Decoder(_Review)
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """What is wrong with one field: the field's path, and its value with what is allowed."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What we say of one request; `warnings` are shown to the user whether it is let through or not."""

    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()
    patch: Patch = ()

    @property
    def allowed(self) -> bool:
        """Whether the request may go on."""
        return not self.refusals


UNCHANGED = Verdict()


def parse(body: bytes) -> Request:
    """The request in an AdmissionReview. Raises `Malformed`."""
    try:
        review = _decoder.decode(body)
    except RecursionError:
        raise Malformed("the AdmissionReview is nested too deeply to be read") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Malformed(f"the body is not an AdmissionReview: {error}") from None
    if review.api_version != API_VERSION or review.kind != KIND:
        found = f"{review.api_version[:64]} {review.kind[:64]}"
        raise Malformed(f"{found} is not supported; send {API_VERSION} {KIND}")
    if review.request is None or not review.request.uid:
        raise Malformed("request.uid is missing; it is needed to answer")
    return review.request


def answer(request: Request, verdict: Verdict) -> bytes:
    """The AdmissionReview that carries the verdict back."""
    response: dict[str, object] = {"uid": request.uid, "allowed": verdict.allowed}
    if not verdict.allowed:
        response["status"] = _status(request, verdict.refusals)
    if verdict.warnings:
        response["warnings"] = [shortened(text) for text in verdict.warnings]
    if verdict.patch:
        # msgspec writes bytes as base64, which is what the API asks for.
        response |= {"patchType": "JSONPatch", "patch": _encoder.encode(verdict.patch)}
    return _encoder.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _status(request: Request, refusals: tuple[Refusal, ...]) -> dict[str, object]:
    """The Status that the API server hands to the user.

    Its causes are what `kubectl edit` shows above the object when it opens the editor again, as for a field that the
    API server itself refuses.
    """
    causes = [{"reason": "FieldValueInvalid", "field": one.field, "message": one.message} for one in refusals]
    details = {"name": request.name, "group": request.kind.group, "kind": request.kind.kind, "causes": causes}
    message = "; ".join(str(one) for one in refusals)
    return {"code": 422, "reason": "Invalid", "message": message, "details": details}


def shortened(text: str) -> str:
    """`text`, cut to what the API server passes on whole."""
    return text if len(text) <= LONGEST_WARNING else text[: LONGEST_WARNING - 1] + "…"
