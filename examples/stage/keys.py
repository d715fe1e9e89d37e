"""Takes the keys of a run out of a Redis again: the few lines of its protocol that this needs."""

from __future__ import annotations

import socket
from typing import Any, BinaryIO, Optional
from urllib.parse import unquote, urlsplit


def _read(stream: BinaryIO) -> Any:
    line = stream.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:]
    if kind == b"-":
        raise OSError(rest.decode())
    if kind == b"$":
        size = int(rest)
        return None if size < 0 else stream.read(size + 2)[:-2]
    if kind == b"*":
        return [_read(stream) for _ in range(int(rest))]
    if not kind:
        raise OSError("the connection was closed")
    return rest


def clear(url: str, name: str) -> Optional[str]:
    """Deletes all keys of the store with this name. Answers why not, if it could not."""
    at = urlsplit(url)
    try:
        with socket.create_connection(
            (at.hostname or "127.0.0.1", at.port or 6379), timeout=10
        ) as wire:
            stream = wire.makefile("rb")

            def call(*words: str | bytes) -> Any:
                parts = [word if isinstance(word, bytes) else word.encode() for word in words]
                wire.sendall(
                    b"*%d\r\n" % len(parts)
                    + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts)
                )
                return _read(stream)

            if at.password:
                call("AUTH", *([unquote(at.username)] if at.username else []), unquote(at.password))
            if at.path.strip("/"):
                call("SELECT", at.path.strip("/"))
            cursor = b"0"
            while True:
                cursor, found = call("SCAN", cursor, "MATCH", f"{{{name}}}:*", "COUNT", "1000")
                if found:
                    call("UNLINK", *found)
                if cursor == b"0":
                    return None
    except (OSError, ValueError) as why:
        return str(why)
