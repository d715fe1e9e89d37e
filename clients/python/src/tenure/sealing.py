"""Codecs: payloads, results and progress that nobody can read between a client and its workers.

A client with a codec sends each of these values sealed, as an object that says so:

    {"$sealed": "BASE64", "codec": "NAME", "queue": "mail", "kind": "send"}

The form is the same in all clients of Tenure. `null` is sent as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ._text import describe
from .errors import CodecError
from .outcomes import Outcome
from .payloads import encode
from .records import JobRecord

#: The member by which a value says that it is sealed.
_SEALED = "$sealed"
_LATER = "give the client the codec (`codec=`), then retry the job or ask again"
#: The server fills the needs of a queue in from payloads, which it cannot read here.
NEEDS_OF_SEALED = (
    "the payload is sealed, so the server cannot fill `{payload.…}` of the queue's needs in; give "
    "the job `needs` of its own, which are computed before it is sealed"
)


@dataclass(frozen=True)
class ValuePlace:
    """Where a value stands: what a codec may bind its bytes to."""

    #: `payload`, `result` or `progress`.
    part: str
    queue: str
    #: `""` for a job without one.
    kind: str

    @property
    def associated_data(self) -> bytes:
        """The place as bytes, the same in all clients: the associated data of an AEAD.

        >>> ValuePlace("payload", "mail", "send").associated_data
        b'payload\\x00mail\\x00send'
        """
        return f"{self.part}\0{self.queue}\0{self.kind}".encode()


class Codec:
    """Turns values into bytes and back, with keys that the server does not have.

    What `encode` or `decode` raises is a `CodecError`; in a run it fails the job for good, unless
    it is an outcome such as `Snooze`. Both are called by several threads at once.

    >>> class Reversed(Codec):
    ...     name = "reversed"
    ...     def encode(self, clear, place):
    ...         return clear[::-1]
    ...     def decode(self, sealed, place):
    ...         return sealed[::-1]
    >>> Reversed().encode(b'{"to":"ann"}', ValuePlace("payload", "mail", "send"))
    b'}"nna":"ot"{'
    """

    #: By which a reader knows whether a value is of its codec; not the id of a key.
    name: str = ""
    #: True: values are read, and sent as they are. For the time until all readers have the codec.
    read_only: bool = False

    def encode(self, clear: bytes, place: ValuePlace) -> bytes:
        """Seal a value, which is JSON in UTF-8."""
        raise NotImplementedError

    def decode(self, sealed: bytes, place: ValuePlace) -> bytes:
        """Return the JSON that `encode` was given; raise if it is of another key or place."""
        raise NotImplementedError


def checked(codec: Optional[Codec]) -> Optional[Codec]:
    """Return a codec that is given as an option, or raise."""
    if codec is None:
        return None
    if not isinstance(codec, Codec):
        raise TypeError(f"codec must be a tenure.Codec, not {codec!r}")
    if not isinstance(codec.name, str) or not codec.name:
        raise TypeError(f"{type(codec).__name__} has no name; values that it seals carry one")
    return codec


def is_sealed(value: Any) -> bool:
    """Say whether a value was sealed by a codec."""
    return isinstance(value, dict) and isinstance(value.get(_SEALED), str)


def sealed(codec: Optional[Codec], value: Any, place: ValuePlace) -> Any:
    """Return what is sent of a value."""
    if codec is None or codec.read_only or value is None:
        return value
    written = encode(value, place.part)
    try:
        made = _bytes(codec.encode(written, place), "encode")
    except Outcome:
        raise
    except Exception as refused:
        raise CodecError(
            f'the codec "{codec.name}" did not seal the {place.part}: {describe(refused)}'
        ) from refused
    text = base64.b64encode(made).decode()
    return {_SEALED: text, "codec": codec.name, "queue": place.queue, "kind": place.kind}


def _bytes(made: Any, method: str) -> bytes:
    if isinstance(made, (bytes, bytearray, memoryview)):
        return bytes(made)
    raise TypeError(f"{method} must return bytes, not {type(made).__name__}")


def sealed_payload(codec: Optional[Codec], job: Mapping[str, Any]) -> Any:
    """Return what is sent of the payload of a job that is pushed, or that a schedule makes."""
    place = ValuePlace("payload", job.get("queue") or "default", job.get("kind") or "")
    return sealed(codec, job.get("payload"), place)


def opened(codec: Optional[Codec], value: Any, part: str, job: Optional[JobRecord] = None) -> Any:
    """Return a value as it was before it was sealed; one that is not sealed comes back as it is.

    `job` is the one that it stands in, if that is known: a value of another queue or kind is
    refused then.
    """
    if not is_sealed(value):
        return value
    name, place = (
        value.get("codec"),
        ValuePlace(part, str(value.get("queue")), str(value.get("kind"))),
    )
    if codec is None:
        raise CodecError(
            f'the {part} is sealed by the codec "{name}", and this client has no codec',
            code="no_codec",
            hint=_LATER,
        )
    if name != codec.name:
        raise CodecError(
            f'the {part} is sealed by the codec "{name}", and this client has "{codec.name}"',
            code="wrong_codec",
            hint=_LATER,
        )
    if job is not None and (job.queue, job.kind) != (place.queue, place.kind):
        raise CodecError(
            f'the {part} was sealed for the kind "{place.kind}" in queue "{place.queue}", and not '
            f'for "{job.kind}" in "{job.queue}"',
            hint="push the job again by a client that has the codec",
        )
    try:
        made = base64.b64decode(value[_SEALED], validate=True)
        return json.loads(_bytes(codec.decode(made, place), "decode"))
    except Outcome:
        raise
    except Exception as refused:
        # The text of a JSON error shows nothing of the value; that of a codec is the codec's.
        why = "it is no base64" if isinstance(refused, binascii.Error) else describe(refused)
        raise CodecError(
            f'the codec "{codec.name}" did not open the {part}: {why}',
            hint="look whether it has the key by which the value was sealed",
        ) from refused


def shown(codec: Optional[Codec], value: Any, part: str) -> Any:
    """Open a value that is shown and not worked on; one that cannot be opened stays as it is."""
    if codec is None:
        return value
    try:
        return opened(codec, value, part)
    except (CodecError, Outcome):
        return value


def show(codec: Optional[Codec], job: JobRecord) -> None:
    """Open the values of a job that is shown."""
    job.payload = shown(codec, job.payload, "payload")
    job.result = shown(codec, job.result, "result")
    job.last_progress = shown(codec, job.last_progress, "progress")
