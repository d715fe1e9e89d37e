"""A codec for tests: it hides a value from a reader of JSON, and from nobody else.

Its bytes are those of the same codec in the tests of the other clients. `VECTOR` stands there too.
"""

from __future__ import annotations

from typing import Any

from tenure import Codec, ValuePlace

#: `CLEAR`, sealed for a job of the kind "send" in the queue "mail" with the second key.
VECTOR = {
    "$sealed": "Am90NGxoJiwCZ2p+TQtkcGtxbiQ8anltKEM7fs+oUmxlZSckVTwoOD1xR2ZtZG5Dc39+cw13",
    "codec": "toy",
    "queue": "mail",
    "kind": "send",
}
CLEAR: Any = {"to": "ann@example.com", "wörter": [1, 2.5, None, True]}


class Toy(Codec):
    """Each byte with one of the key and one of the place; the first key seals, all of them open."""

    name = "toy"

    def __init__(self, *keys: tuple[int, bytes]) -> None:
        self._keys = dict(keys)
        self._newest = keys[0][0]

    def encode(self, clear: bytes, place: ValuePlace) -> bytes:
        """Write the number of the key, and then a sum and the value."""
        data = bytes([_sum(clear, place)]) + clear
        return bytes([self._newest]) + _mixed(data, self._keys[self._newest], place)

    def decode(self, sealed: bytes, place: ValuePlace) -> bytes:
        """Read what `encode` wrote."""
        if sealed[0] not in self._keys:
            raise LookupError(f"there is no key {sealed[0]} here")
        data = _mixed(sealed[1:], self._keys[sealed[0]], place)
        if data[0] != _sum(data[1:], place):
            raise ValueError("the sum is wrong")
        return data[1:]


def _sum(clear: bytes, place: ValuePlace) -> int:
    return (sum(clear) + sum(place.associated_data)) % 256


def _mixed(data: bytes, key: bytes, place: ValuePlace) -> bytes:
    bound = place.associated_data
    return bytes(each ^ key[at % len(key)] ^ bound[at % len(bound)] for at, each in enumerate(data))


OLD, NEW = (1, b"the first key"), (2, b"another key")
