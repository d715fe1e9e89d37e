"""Addresses of servers as people write them: one, several with commas between, or a store's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import SplitResult, parse_qs, urlsplit, urlunsplit

DEFAULT_PORT = 7171
#: `localhost:7171` and `[::1]:7171`, as people write an address.
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}(?:/[^@?#]*)?")
#: What stands before the address of a Redis whose servers write down where they are.
_SHARED = "shared+"
#: Stores in which the servers that use them can be found.
_SEARCHED = (f"{_SHARED}redis", f"{_SHARED}rediss")
_STORES = (
    "memory",
    "file",
    "redis",
    "rediss",
    "valkey",
    "redis-sentinel",
    "redis-cluster",
    *_SEARCHED,
)
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
class Store:
    """A store in Redis, in which its servers are looked up. It is never spoken to as a server."""

    #: As it was given. It may hold a password.
    given: str = field(repr=False)
    #: For redis-py: without the query. It may hold a password.
    redis_url: str = field(repr=False)
    #: The name of the store, which its keys begin with.
    name: str
    #: The address without user and password, for messages.
    shown: str

    @classmethod
    def read(cls, text: str) -> Optional[Store]:
        """Read the address of a store that can be searched; `None` for any other address."""
        if _store_scheme(text) not in _SEARCHED:
            return None
        parts = _split(text)
        scheme, host = parts.scheme.removeprefix(_SHARED), parts.hostname
        if "," in parts.netloc or not host:
            raise ValueError(
                f"the address of a Redis is {scheme}://HOST:PORT; it stands alone, in no list"
            )
        port = "" if _port(parts) is None else f":{parts.port}"
        # A client needs the name alone; the other settings of a store are its servers' matter.
        query = parse_qs(parts.query)
        name = query.get("name", [_DEFAULT_NAME])[0]
        if "{" in name or "}" in name:
            raise ValueError('the name of a store takes no "{" and no "}"')
        shown_host = f"[{host}]" if ":" in host else host
        return cls(
            given=text,
            redis_url=urlunsplit((scheme, parts.netloc, parts.path, "", "")),
            name=name,
            shown=f"{scheme}://{shown_host}{port}{parts.path.rstrip('/')}"
            + ("" if name == _DEFAULT_NAME else f"?name={name}"),
        )


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
