"""Which of several servers the next call goes to: the one place of that rule.

A client stays with the server that works. One that cannot be reached, or says that it does not
serve, is left for the next of the list. A server that passed a call on names the owner of the
store; a client that knows several servers goes to the owner from then on.
"""

from __future__ import annotations

import logging
from typing import Optional

from . import _discovery
from ._addresses import Address, Store
from ._lost import NoServerFound
from ._settings import Settings
from ._text import logger
from ._wire import now

log: logging.Logger = logger("tenure")

#: A server that could not be reached is not followed to for as long.
_AVOID_S = 30.0
#: Where there are other servers, a connection that is not made within this is given up.
_CONNECT_S = 3.0
#: Said by a server before anything happened: another one may serve.
_SERVES_NOT = {"draining", "not_owner", "store_unavailable"}
#: Said by a proxy whose server is not there.
GATEWAY = (502, 503, 504)


class Servers:
    """The servers of one transport.

    It has no lock: what follows on an address depends on that address alone, so threads that meet
    the same fault at once decide the same.
    """

    def __init__(self, settings: Settings) -> None:
        self._store = settings.store
        if self._store is not None:
            _discovery.check_installed()
        self._listed = settings.addresses
        self._secret = settings.token is not None
        self._wants_tls = settings.wants_tls
        self._names_tls = settings.names_tls
        #: Where the next call goes; `None` if the servers must be looked up first.
        self.at: Optional[Address] = self._listed[0] if self._listed else None
        #: The server of the list that named the owner.
        self._way_back: Optional[Address] = None
        #: Servers that could not be reached, and until when nobody's word leads there.
        self._avoided: dict[Address, float] = {}
        #: For messages: all addresses, without credentials.
        self.shown: str = settings.shown

    @property
    def are_several(self) -> bool:
        """Whether there may be another server to go to."""
        return self._store is not None or len(self._listed) > 1

    def current(self) -> Address:
        """Return where the next call goes; looks the servers up if need be, which blocks."""
        at = self.at
        if at is None:
            assert self._store is not None
            self._listed = self._look_up(self._store)
            at = self.at = self._listed[0]
        return at

    def _look_up(self, store: Store) -> tuple[Address, ...]:
        """Look the servers up. Who may write to the Redis must not get a token in clear."""
        found = _discovery.find_servers(store)
        usable = tuple(each for each in found if self._may_call(each))
        if not usable:
            raise NoServerFound(
                f"{store.shown} names {', '.join(each.url for each in found)} in clear, and this "
                "client is set up for TLS, so it sends nothing there; start the servers with "
                "`tenure serve --tls-cert …`"
            )
        for each in usable:
            if each not in self._listed:
                log.info("found the server %s in %s", each.url, store.shown)
        return usable

    def _may_call(self, found: Address) -> bool:
        """Tell whether an address that was looked up may get the token."""
        if self._names_tls:
            return found.is_tls
        return found.is_safe or not self._wants_tls

    def connect_within(self, timeout: float) -> float:
        """Return how many seconds a connection may take of a call's whole time."""
        return min(timeout, _CONNECT_S) if self.are_several else timeout

    def lost(self, address: Address) -> None:
        """Note that a server could not be reached, or its answer was lost."""
        moment = now()
        until = {each: end for each, end in self._avoided.copy().items() if end > moment}
        until[address] = moment + _AVOID_S
        self._avoided = until
        self._leave(address)

    def answered(self, address: Address, status: int, data: object, owner: Optional[str]) -> None:
        """Note the answer of a server, and whom it named as the owner (`Tenure-Owner`)."""
        code = data.get("code") if isinstance(data, dict) else None
        if code in _SERVES_NOT or (status in GATEWAY and code in (None, "unexpected_answer")):
            self._leave(address)
        elif owner is not None and status < 500:
            self._follow(address, owner)

    def _leave(self, address: Address) -> None:
        if address != self.at:
            return
        listed = self._listed
        if address not in listed:
            way_back = self._way_back
            self.at = way_back if way_back in listed else listed[0]
            return
        after = listed.index(address) + 1
        if after < len(listed):
            self.at = listed[after]
        else:
            self.at = None if self._store is not None else listed[0]

    def _follow(self, address: Address, named: str) -> None:
        # A single address may be that of a balancer, whose servers nobody else can reach.
        if not self.are_several or address != self.at:
            return
        try:
            owner = Address.read(named)
        except ValueError:
            return
        if owner == address or self._is_weaker(address, owner):
            return
        if self._avoided.get(owner, 0.0) > now():
            return
        if address in self._listed:
            self._way_back = address
        self.at = owner

    def _is_weaker(self, address: Address, owner: Address) -> bool:
        """Whether calls would be less safe there than where this client was sent."""
        if owner.is_tls:
            return False
        if self._store is not None and not self._may_call(owner):
            return True
        return address.is_tls or (self._secret and any(each.is_tls for each in self._listed))
