"""Addresses of servers as people write them: one, several with commas between, or a store's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Optional
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

DEFAULT_PORT = 7171
#: `localhost:7171` and `[::1]:7171`, as people write an address.
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}(?:/[^@?#]*)?")
#: Stores in which the servers that use them can be found: a Redis or Valkey of any kind.
_SEARCHED = ("redis", "rediss", "valkey", "valkeys", "redis-sentinel", "redis-cluster")
_STORES = ("memory", "file", *_SEARCHED)
_REDIS_PORT = 6379
_SENTINEL_PORT = 26379
_FORMS = "HOST:PORT, http://HOST:PORT, https://HOST or tenure://HOST"
_DEFAULT_NAME = "tenure"


@dataclass(frozen=True)
class Address:
    """The address of one server. It holds no secret, so it may be shown."""

    scheme: str
    host: str
    port: int
    #: The path before `/v1`, for a server behind a proxy: "" or "/tenure".
    prefix: str

    @classmethod
    def read(cls, text: str) -> Address:
        """Read one address; `ValueError` says what is wrong with it and does not repeat it."""
        parts = _split(f"http://{text}" if _HOST_AND_PORT.fullmatch(text) else text)
        # No message repeats the address: it may hold a password.
        if parts.scheme in _STORES:
            raise ValueError(
                f'"{parts.scheme}:" is the address of a store; this client speaks to a server: '
                "start `tenure serve --store ADDRESS` and give the server's address"
            )
        if parts.scheme not in ("http", "https", "tenure") or not parts.hostname:
            raise ValueError(f"the address of a server is {_FORMS}")
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                "the address of a server takes no user and no password; give the token as "
                "`token` or in TENURE_TOKEN"
            )
        if parts.query or parts.fragment:
            raise ValueError('the address of a server takes no "?" and no "#"')
        default = {"http": 80, "https": 443, "tenure": DEFAULT_PORT}[parts.scheme]
        return cls(
            scheme="https" if parts.scheme == "https" else "http",
            host=parts.hostname,
            port=_port(parts) or default,
            prefix=parts.path.rstrip("/"),
        )

    @property
    def is_tls(self) -> bool:
        """Whether it is called over TLS."""
        return self.scheme == "https"

    @property
    def is_safe(self) -> bool:
        """Whether nobody on the network can read what goes there."""
        if self.is_tls or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """The whole address: what `read` reads, and what stands before `/v1`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"


def read_addresses(text: str) -> tuple[Address, ...]:
    """Read one address, or several with commas between. One that stands twice counts once."""
    parts = [part.strip() for part in text.split(",")]
    # A store's own address may have commas, and is refused as a whole.
    if len(parts) > 1 and _store_scheme(parts[0]) is None:
        if not all(parts):
            raise ValueError(
                "a list of addresses has an empty part; write one comma between two addresses, "
                "and none at the end"
            )
        for number, part in enumerate(parts, 1):
            try:
                Address.read(part)
            except ValueError as wrong:
                raise ValueError(f"address {number} of {len(parts)}: {wrong}") from None
        return tuple(dict.fromkeys(Address.read(part) for part in parts))
    return (Address.read(text.strip()),)


@dataclass(frozen=True)
class Login:
    """Who a Redis, or a sentinel, is told that we are. Without a password nothing is said."""

    user: Optional[str] = None
    password: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Store:
    """A store in Redis, in which its servers are looked up. It is never spoken to as a server."""

    #: As it was given. It may hold a password.
    given: str = field(repr=False)
    #: The name of the store, which its keys begin with.
    name: str
    #: The address without user and password, for messages.
    shown: str
    #: One server; some nodes of a cluster; or the sentinels that know the primary.
    hosts: tuple[tuple[str, int], ...]
    is_cluster: bool
    #: The name under which sentinels watch the primary; `None`: there are none.
    master: Optional[str]
    db: int
    login: Login
    sentinel_login: Login
    is_tls: bool
    #: A file of certificates that are trusted in place of the system's.
    ca: Optional[str]

    @classmethod
    def read(cls, text: str) -> Optional[Store]:
        """Read the address of a store that can be searched; `None` for any other address."""
        scheme = _store_scheme(text)
        if scheme not in _SEARCHED:
            return None
        parts = _split(text)
        login, _, listed = parts.netloc.rpartition("@")
        is_list = scheme in ("redis-sentinel", "redis-cluster")
        usual = _SENTINEL_PORT if scheme == "redis-sentinel" else _REDIS_PORT
        hosts = tuple(_host(one, scheme, usual) for one in listed.split(","))
        if len(hosts) > 1 and not is_list:
            raise ValueError(
                f"the address of a Redis is {scheme}://HOST:PORT; it stands alone, in no list"
            )
        path = parts.path.strip("/").split("/")
        master = unquote(path.pop(0)) if scheme == "redis-sentinel" else None
        if master == "":
            raise ValueError("the address of sentinels names no master; write /MASTER after them")
        db = path[0] if path else ""
        if db and not db.isdecimal():
            raise ValueError("the address of a Redis has a database that is not a number from 0 on")
        # The other settings of a store are its servers' matter.
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        name = query.get("name", _DEFAULT_NAME)
        if "{" in name or "}" in name:
            raise ValueError('the name of a store takes no "{" and no "}"')
        user, _, password = login.partition(":")
        return cls(
            given=text,
            name=name,
            shown=f"{scheme}://{listed}{parts.path.rstrip('/')}"
            + ("" if name == _DEFAULT_NAME else f"?name={name}"),
            hosts=hosts,
            is_cluster=scheme == "redis-cluster",
            master=master,
            db=int(db or 0),
            login=Login(unquote(user) or None, unquote(password) or None),
            sentinel_login=Login(query.get("sentinel_user"), query.get("sentinel_password")),
            is_tls=scheme in ("rediss", "valkeys") or query.get("tls") == "true",
            ca=query.get("ca"),
        )


def _host(text: str, scheme: str, usual: int) -> tuple[str, int]:
    """Read `HOST[:PORT]`."""
    parts = _split(f"{scheme}://{text}")
    if not parts.hostname:
        raise ValueError(f"the address of a Redis is {scheme}://HOST:PORT; it names no host")
    return parts.hostname, _port(parts) or usual


def _store_scheme(text: str) -> Optional[str]:
    """Return what kind of store an address names; `None` if it is none: a host may be `redis`."""
    first = text.partition(",")[0].strip()
    scheme = first.partition(":")[0].lower()
    return None if scheme not in _STORES or _HOST_AND_PORT.fullmatch(first) else scheme


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        raise ValueError(f"the address of a server is {_FORMS}") from None


def _port(parts: SplitResult) -> Optional[int]:
    try:
        return parts.port
    except ValueError:
        raise ValueError("the port of an address is a number from 1 to 65535") from None
