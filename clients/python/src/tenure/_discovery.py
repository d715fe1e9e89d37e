"""The servers of a store in Redis: where they wrote themselves down, and who owns the store.

Needs redis-py, which the extra `redis` brings. Nothing is written to Redis.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ._addresses import Address, Login, Store
from ._lost import NoServerFound

#: A living server registers itself each second; after this long without that it counts as gone.
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

    own = f"{{{store.name}}}:own"
    try:
        with _client(store) as client:
            owner = client.hget(own, "owner")
            servers = client.hgetall(f"{{{store.name}}}:servers")
            where = {"target_nodes": client.get_node_from_key(own)} if store.is_cluster else {}
            seconds, micros = client.time(**where)
    except (redis.RedisError, OSError, ValueError) as fault:
        # An error of redis-py names the host and never the password.
        raise NoServerFound(f"{store.shown}: cannot look up its servers: {fault}") from None
    found = read_servers(owner, servers, seconds * 1_000_000 + micros)
    if not found:
        raise NoServerFound(
            f"no server of Tenure uses {store.shown}; start one: tenure serve --store {store.shown}"
        )
    return found


def _client(store: Store) -> Any:
    """Return redis-py's client of the Redis, or of the primary that has the store."""
    import redis.cluster
    import redis.sentinel
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    # Parts of it have no types.
    py: Any = redis
    # The client's own retries, within `retry_for`, are the only ones: since version 6 redis-py
    # retries by default, which takes seconds for a Redis that is not there.
    bounds = {
        "socket_timeout": _TIMEOUT_S,
        "socket_connect_timeout": _TIMEOUT_S,
        "retry": Retry(NoBackoff(), 0),
    }
    tls = {"ssl": True, "ssl_ca_certs": store.ca} if store.is_tls else {}
    options: dict[str, Any] = {"decode_responses": True, **bounds, **tls, **_known_as(store.login)}
    if store.is_cluster:
        nodes = [py.cluster.ClusterNode(host, port) for host, port in store.hosts]
        return py.RedisCluster(startup_nodes=nodes, **options)
    if store.master is not None:
        asks = {**bounds, **tls, **_known_as(store.sentinel_login)}
        sentinels = py.sentinel.Sentinel(list(store.hosts), sentinel_kwargs=asks)
        return sentinels.master_for(store.master, db=store.db, **options)
    host, port = store.hosts[0]
    return py.Redis(host=host, port=port, db=store.db, **options)


def _known_as(login: Login) -> dict[str, Optional[str]]:
    return {"username": login.user, "password": login.password} if login.password else {}


def read_servers(
    owner: Optional[str], servers: Mapping[str, str], moment: int
) -> tuple[Address, ...]:
    """Read what servers wrote of themselves: the owner first, then whoever wrote last.

    A field is the id of a server; its value is the moment of its last word in microseconds, its
    release, the newest format that it reads, the last entry that its rows have, and its address,
    with spaces between.
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
