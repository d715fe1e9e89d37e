"""As much of a Redis client as this folder needs, so that nothing must be installed."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any, Optional
from urllib.parse import unquote, urlsplit


class Redis:
    """Named as in redis-py. Every key gets a prefix, so that nothing else is touched."""

    def __init__(self, url: str, prefix: str) -> None:
        at = urlsplit(url)
        self._url = url
        self._prefix = prefix
        self._socket = socket.create_connection((at.hostname or "127.0.0.1", at.port or 6379))
        self._stream = self._socket.makefile("rb")
        if at.password:
            name = [unquote(at.username)] if at.username else []
            self.call("AUTH", *name, unquote(at.password))
        if at.path.strip("/"):
            self.call("SELECT", at.path.strip("/"))

    def call(self, *words: Any) -> Any:
        """Send a command and read its reply."""
        parts = [str(word).encode() for word in words]
        text = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        self._socket.sendall(b"*%d\r\n" % len(parts) + text)
        return self.read()

    def read(self) -> Any:
        """Read a reply."""
        line = self._stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"$":
            return None if rest == b"-1" else self._stream.read(int(rest) + 2)[:-2].decode()
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        if kind == b":":
            return int(rest)
        if kind == b"+":
            return rest.decode()
        raise OSError(rest.decode() or "the connection was closed")

    def listeners(self) -> int:
        """Count who listens here now."""
        return self.call("CLIENT", "LIST", "TYPE", "pubsub").count(f" name={self._prefix} ")

    def set(self, key: str, value: str, *, px: int, nx: bool = False) -> Optional[str]:
        """Set a key that expires."""
        return self.call("SET", self._prefix + key, value, "PX", px, *(["NX"] if nx else []))

    def incr(self, key: str) -> int:
        """Count one up."""
        return self.call("INCR", self._prefix + key)

    def delete(self, key: str) -> int:
        """Delete a key."""
        return self.call("DEL", self._prefix + key)

    def zadd(self, key: str, scores: dict[str, float]) -> None:
        """Set scores of members."""
        for member, score in scores.items():
            self.call("ZADD", self._prefix + key, repr(score), member)

    def zrem(self, key: str, member: str) -> None:
        """Take a member out."""
        self.call("ZREM", self._prefix + key, member)

    def zrangebyscore(self, key: str, low: float, high: float) -> list[str]:
        """List members between two scores."""
        return self.call("ZRANGEBYSCORE", self._prefix + key, repr(low), repr(high))

    def zscore(self, key: str, member: str) -> Optional[str]:
        """Show the score of a member."""
        return self.call("ZSCORE", self._prefix + key, member)

    def listen(self, pattern: str) -> Iterator[str]:
        """Yield keys of notifications, on a connection of their own as Redis wants it."""
        own = Redis(self._url, self._prefix)
        own.call("CLIENT", "SETNAME", self._prefix)
        own.call("PSUBSCRIBE", pattern)
        while True:
            key = own.read()[3]
            if key.startswith(self._prefix):
                yield key[len(self._prefix) :]
