"""The site, which is the witness: one session for an account at a time, and all of it written down.

As real sites do, it keeps the session of a broken connection for some seconds. It knows nothing of
Tenure.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import hmac
import json
import time
from pathlib import Path

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

PAGE_S = 0.05


class Website:
    """Sessions, one for each account."""

    def __init__(self, secret: bytes, log: Path, grace_s: float) -> None:
        self._secret = secret
        self._log = log.open("a", buffering=1)
        self._grace_s = grace_s
        #: By account: None while its connection stands; after it broke, the end of its session.
        self._sessions: dict[str, float | None] = {}

    def _write(self, event: str, login: dict, **more: object) -> None:
        entry = {"event": event, "account": login["login"], "who": login["who"], **more}
        entry.update(at=time.monotonic(), fence=login["fence"])
        self._log.write(json.dumps(entry) + "\n")

    def _generation(self, login: dict) -> int | None:
        # A token is its number and a signature. Older ones stay valid, so that their use is seen.
        number, _, signature = login["token"].partition(".")
        signed = hmac.new(self._secret, f"{login['login']} {number}".encode(), hashlib.sha256)
        return int(number) if hmac.compare_digest(signed.hexdigest(), signature) else None

    def _refusal(self, login: dict) -> str | None:
        if self._generation(login) is None:
            return "wrong token"
        account = login["login"]
        if account not in self._sessions:
            return None
        ends = self._sessions[account]
        if ends is None:
            return "already logged in"
        return "its broken session is not over" if time.monotonic() < ends else None

    async def serve_one(self, connection: ServerConnection) -> None:
        """Serve one connection, from its login to its end."""
        try:
            login = json.loads(await connection.recv())
        except ConnectionClosed:
            return
        account = login["login"]
        refusal = self._refusal(login)
        if refusal is not None:
            self._write("refused", login, why=refusal)
            with contextlib.suppress(ConnectionClosed):
                await connection.send(json.dumps({"refused": refusal}))
            return
        self._sessions[account] = None
        self._write("login", login, generation=self._generation(login))
        try:
            await connection.send(json.dumps({"welcome": account}))
            await self._serve_pages(connection)
        except ConnectionClosed:
            self._write("broken", login)
            self._sessions[account] = time.monotonic() + self._grace_s
            return
        self._write("logout", login)
        del self._sessions[account]
        with contextlib.suppress(ConnectionClosed):
            await connection.send(json.dumps({"goodbye": account}))

    async def _serve_pages(self, connection: ServerConnection) -> None:
        page = 0
        while "logout" not in json.loads(await connection.recv()):
            page += 1
            await asyncio.sleep(PAGE_S)
            await connection.send(json.dumps({"page": page}))


async def main() -> None:
    """Serve until the process is ended."""
    options = argparse.ArgumentParser()
    options.add_argument("--secret-file", type=Path, required=True)
    options.add_argument("--log", type=Path, required=True)
    options.add_argument("--grace", type=float, required=True)
    args = options.parse_args()
    website = Website(args.secret_file.read_bytes(), args.log, args.grace)
    # Pings find out a collector that does not answer: it was stopped, or its machine sleeps.
    pings = {"ping_interval": 0.5, "ping_timeout": 0.8, "close_timeout": 0.1}
    async with serve(website.serve_one, "127.0.0.1", 0, **pings) as server:
        port = server.sockets[0].getsockname()[1]
        print(f"listening on ws://127.0.0.1:{port}", flush=True)
        await asyncio.Event().wait()


asyncio.run(main())
