"""Where the servers are and how to speak to it: arguments first, then the environment."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from typing import Optional
from urllib.parse import quote

from ._addresses import DEFAULT_PORT, Address, Store, read_addresses
from ._tls import context


@dataclass(frozen=True)
class Settings:
    """Servers of one store and the right to call them. The token is never shown."""

    #: In the order in which they are tried; empty if they are looked up in `store`.
    addresses: tuple[Address, ...]
    store: Optional[Store]
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
        where = url or os.environ.get("TENURE_URL") or f"http://127.0.0.1:{DEFAULT_PORT}"
        store = Store.read(where)
        return cls(
            addresses=read_addresses(where) if store is None else (),
            store=store,
            token=token or os.environ.get("TENURE_TOKEN") or None,
            namespace=namespace or os.environ.get("TENURE_NAMESPACE") or None,
            ca=ca or os.environ.get("TENURE_CA") or None,
            client_cert=client_cert or os.environ.get("TENURE_CLIENT_CERT") or None,
            client_key=client_key or os.environ.get("TENURE_CLIENT_KEY") or None,
        )

    def tls(self) -> Optional[ssl.SSLContext]:
        """Read the files of TLS; `None` if the one server there is is called in clear."""
        if len(self.addresses) == 1 and not self.addresses[0].is_tls:
            return None
        return context(self.ca, self.client_cert, self.client_key)

    @property
    def wants_tls(self) -> bool:
        """Whether somebody who set this up counts on TLS between client and servers."""
        over_tls = self.store is not None and self.store.is_tls
        return over_tls or self.names_tls

    @property
    def names_tls(self) -> bool:
        """Whether an authority or a certificate for the servers themselves was given."""
        return self.ca is not None or self.client_cert is not None

    @property
    def url(self) -> str:
        """The address as another client takes it. That of a store may hold a password."""
        return self.shown if self.store is None else self.store.given

    @property
    def shown(self) -> str:
        """The address for messages, without credentials."""
        if self.store is not None:
            return self.store.shown
        return ",".join(address.url for address in self.addresses)

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
