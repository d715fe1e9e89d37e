"""The servers of a store in Redis: where they wrote themselves down, and who owns the store.

Needs redis-py, which the extra `redis` brings. Nothing is written to Redis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ._addresses import Address, Store
from ._repeats import NoServerFound

#: A living server writes itself each second; one that wrote nothing for so long is taken for gone.
_LIVES_US = 10_000_000
_TIMEOUT_S = 3.0


def check_installed() -> None:
    """Raise `ImportError` unless redis-py is there."""
    try:
        import redis  # noqa: F401
    except ImportError:
        raise ImportError(
            "redis-py finds the servers of a store in Redis, and is not installed; install it: "
            "pip install redis, or give the address of a server"
        ) from None


def find_servers(store: Store) -> tuple[Address, ...]:
    """Return the living servers of a store, its owner first; `NoServerFound` if there is none."""
    import redis

    tag = f"{{{store.name}}}"
    try:
        with redis.Redis.from_url(
            store.redis_url,
            decode_responses=True,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
        ) as client:
            pipe: Any = client.pipeline(transaction=False)
            pipe.hget(f"{tag}:own", "owner").hgetall(f"{tag}:servers").time()
            owner, servers, (seconds, micros) = pipe.execute()
    except (redis.RedisError, OSError, ValueError) as fault:
        # An error of redis-py names the host and never the password.
        raise NoServerFound(f"{store.shown}: cannot look up its servers: {fault}") from None
    found = read_servers(owner, servers, seconds * 1_000_000 + micros)
    if not found:
        raise NoServerFound(
            f"no server of Tenure uses {store.shown}; start one: tenure serve --store {store.shown}"
        )
    return found


def read_servers(
    owner: Optional[str], servers: Mapping[str, str], moment: int
) -> tuple[Address, ...]:
    """Read what servers wrote of themselves: the owner first, then whoever wrote last.

    A field is the id of a server; its value is the moment of its last word in microseconds, its
    release, the newest format that it reads, the last entry that it has, and its address, with
    spaces between.
    """
    found: list[tuple[bool, int, Address]] = []
    for id, text in servers.items():
        try:
            said, _release, _format, _applied, url = text.split(" ", 4)
            if moment - int(said) <= _LIVES_US:
                found.append((id == owner, int(said), Address.read(url)))
        except ValueError:
            # A newer release may write it otherwise.
            continue
    found.sort(key=lambda each: each[:2], reverse=True)
    return tuple(dict.fromkeys(address for _, _, address in found))
