"""Where the server is and how to speak to it: arguments first, then the environment."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import quote, urlsplit

from ._tls import context

_DEFAULT_PORT = 7171
#: `localhost:7171` and `[::1]:7171`, as people write an address.
_HOST_AND_PORT = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}(?:/[^@?#]*)?")
_STORES = ("memory", "file", "redis", "rediss", "valkey", "redis-sentinel", "redis-cluster")


@dataclass(frozen=True)
class Settings:
    """One server and the right to call it. The token is never shown."""

    scheme: str
    host: str
    port: int
    #: The path before `/v1`, for a server behind a proxy: "" or "/tenure".
    prefix: str
    token: Optional[str] = field(repr=False)
    namespace: Optional[str]
    #: PEM files, for https: whom the server's certificate must be of, and what this client shows.
    ca: Optional[str] = None
    client_cert: Optional[str] = None
    client_key: Optional[str] = None

    @classmethod
    def find(
        cls,
        url: Optional[str],
        token: Optional[str],
        namespace: Optional[str],
        ca: Optional[str] = None,
        client_cert: Optional[str] = None,
        client_key: Optional[str] = None,
    ) -> Settings:
        """Read what is given, and the variables of the environment for the rest."""
        where = url or os.environ.get("TENURE_URL") or f"http://127.0.0.1:{_DEFAULT_PORT}"
        if _HOST_AND_PORT.fullmatch(where):
            where = f"http://{where}"
        parts = urlsplit(where)
        # No message repeats the address: it may hold a password.
        if parts.scheme in _STORES:
            raise ValueError(
                f'"{parts.scheme}:" is the address of a store; this client speaks to a server: '
                "start `tenure serve --store ADDRESS` and give the server's address"
            )
        if parts.scheme not in ("http", "https", "tenure") or not parts.hostname:
            raise ValueError(
                "the address of a server is HOST:PORT, http://HOST:PORT, https://HOST or tenure://HOST"
            )
        if parts.username is not None or parts.password is not None:
            raise ValueError(
                "the address of a server takes no user and no password; give the token as "
                "`token` or in TENURE_TOKEN"
            )
        if parts.query or parts.fragment:
            raise ValueError('the address of a server takes no "?" and no "#"')
        default = {"http": 80, "https": 443, "tenure": _DEFAULT_PORT}[parts.scheme]
        return cls(
            scheme="https" if parts.scheme == "https" else "http",
            host=parts.hostname,
            port=parts.port or default,
            prefix=parts.path.rstrip("/"),
            token=token or os.environ.get("TENURE_TOKEN") or None,
            namespace=namespace or os.environ.get("TENURE_NAMESPACE") or None,
            ca=ca or os.environ.get("TENURE_CA") or None,
            client_cert=client_cert or os.environ.get("TENURE_CLIENT_CERT") or None,
            client_key=client_key or os.environ.get("TENURE_CLIENT_KEY") or None,
        )

    def tls(self) -> Optional[ssl.SSLContext]:
        """Read the files of TLS; `None` for a server that is called in clear."""
        if self.scheme != "https":
            return None
        return context(self.ca, self.client_cert, self.client_key)

    @property
    def origin(self) -> str:
        """The address without a path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def headers(self) -> dict[str, str]:
        """What every request carries."""
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if self.namespace:
            headers["Tenure-Namespace"] = self.namespace
        return headers


#: Where every app speaks to, whatever it was made with, while `tenure.testing` says so.
instead: Optional[Settings] = None


def path_part(name: str) -> str:
    """Write a name as one part of a path. `key:` of a job's key stays readable."""
    return quote(name, safe=":@")
