"""A proxy between client and server that loses answers on purpose."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Optional


class Proxy:
    """Passes requests on, and spoils those that it was told to."""

    def __init__(self, port: int) -> None:
        self.target = port
        #: Method and path of every request that came, in order.
        self.seen: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        #: How many of them the server has answered, whether or not anybody heard of it.
        self.answered = 0
        #: Held requests go on to the server when it is set.
        self.released = threading.Event()
        #: Called when the server has done it and nobody has heard of it yet.
        self.after_loss: Callable[[], None] = lambda: None
        self._rules: list[tuple[str, str, str]] = []
        self._lock = threading.Lock()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                what = proxy._note(self.command, self.path, body)
                if what == "refuse":
                    # Read, and not forwarded.
                    self.close_connection = True
                    self.connection.close()
                    return
                if what is not None and what.startswith("answer"):
                    _, status, retry_after = what.split()
                    problem = b'{"code":"draining","detail":"the server is draining"}'
                    self.send_response(int(status))
                    self.send_header("Retry-After", retry_after)
                    self.send_header("Content-Type", "application/problem+json")
                    self.send_header("Content-Length", str(len(problem)))
                    self.end_headers()
                    self.wfile.write(problem)
                    return
                if what == "hold":
                    proxy.released.wait(60)
                upstream = http.client.HTTPConnection("127.0.0.1", proxy.target, timeout=70)
                try:
                    headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
                    upstream.request(self.command, self.path, body or None, headers)
                    answer = upstream.getresponse()
                    data = answer.read()
                except OSError:
                    self.close_connection = True
                    return
                finally:
                    upstream.close()
                with proxy._lock:
                    proxy.answered += 1
                if what == "lose":
                    proxy.after_loss()
                    # Carried out, and nobody hears of it.
                    self.close_connection = True
                    self.connection.close()
                    return
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "connection", "date"):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if what == "half":
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                    self.connection.close()
                    return
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

            def log_message(self, format: str, *_: Any) -> None:
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except (OSError, ValueError):
                    self.close_connection = True

            def finish(self) -> None:
                with contextlib.suppress(OSError, ValueError):
                    super().finish()

        class Quiet(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spoil(self, what: str, method: str, path: str, times: int = 1) -> None:
        """Spoil the next requests whose path begins so.

        `lose`: the server does it and its answer is dropped; `half`: a part of the answer comes;
        `refuse`: the server never sees it; `hold`: it sees it when `released` is set;
        `answer STATUS SECONDS`: answered by the proxy.
        """
        with self._lock:
            self._rules += [(what, method, path)] * times

    def count(self, method: str, path: str) -> int:
        """Count the requests that have come."""
        return sum(1 for m, p in self.seen if m == method and p.split("?")[0].startswith(path))

    def left(self) -> int:
        """Count the rules that met no request yet."""
        return len(self._rules)

    def _note(self, method: str, path: str, body: bytes) -> Optional[str]:
        with self._lock:
            self.seen.append((method, path))
            self.bodies.append(body)
            for n, (what, verb, begin) in enumerate(self._rules):
                if verb == method and path.startswith(begin):
                    del self._rules[n]
                    return what
        return None

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
