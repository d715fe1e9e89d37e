"""A double of a server: says what a test wants, and remembers who asked."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional


class Double:
    """Answers every call alike, from its making until it is stopped."""

    def __init__(self, port: int = 0) -> None:
        self.status = 200
        self.body: dict[str, Any] = {"at": "2026-01-01T00:00:00Z", "jobs": {}}
        self.headers: dict[str, str] = {}
        #: The paths of all calls, and the token of each.
        self.seen: list[str] = []
        self.tokens: list[Optional[str]] = []
        self._open: set[socket.socket] = set()
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                double.seen.append(self.path)
                double.tokens.append(self.headers.get("Authorization"))
                data = json.dumps(double.body).encode()
                self.send_response(double.status)
                for name, value in double.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def setup(self) -> None:
                super().setup()
                double._open.add(self.connection)

            def log_message(self, format: str, *_: object) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Quiet(("127.0.0.1", port), Handler)
        self.port: int = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def names_as_owner(self, other: Double) -> None:
        """Say from now on that another server owns the store."""
        self.headers["Tenure-Owner"] = other.url

    def serves_not(self, code: str, retry_after: str = "1") -> None:
        """Refuse every call from now on."""
        self.status = 503
        self.body = {"code": code, "detail": "it does not serve"}
        self.headers["Retry-After"] = retry_after

    def stop(self) -> None:
        """Refuse connections, and break those that are there."""
        self._server.shutdown()
        self._server.server_close()
        # A server of another test could get a port that is free, and would answer calls of this
        # one. A socket that is bound and does not listen keeps the port, and refuses connections.
        self._port_kept = socket.socket()
        self._port_kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._port_kept.bind(("127.0.0.1", self.port))
        for each in list(self._open):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
