"""The outside world of the third page: two sites behind four proxies, and the witness of both.

Each proxy is a port that takes requests for any site, so no name is looked up. The sites want an
account with each request, write down how many requests they answer at once, and have locked out
one account.

    GET http://SITE/shelves/ID/PAGE   a page, after 0.3 s
    GET /witness                      every request that was answered
"""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PAGES = 4
PAGE_TAKES_S = 0.3
LOCKED_OUT = "abe"

_writing = threading.Lock()
_answered: list[dict] = []


class Proxy(BaseHTTPRequestHandler):
    """Answers one request as the site for which it is."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer a page, or what was seen."""
        if self.path == "/witness":
            with _writing:
                return self._answer(200, "application/json", json.dumps(_answered))
        at = urlsplit(self.path)
        kind, shelf, page = [*at.path.strip("/").split("/"), "", ""][:3]
        if at.hostname is None or kind != "shelves" or not page.isdigit():
            return self.send_error(404)
        login = self.headers.get("Authorization", "Basic ").split(" ", 1)[1]
        account = base64.b64decode(login).decode().split(":")[0]
        began = time.monotonic()
        status = 403 if account in ("", LOCKED_OUT) else 200
        if status == 200:
            time.sleep(PAGE_TAKES_S)
        following = int(page) + 1
        link = f'<a class="next" href="/shelves/{shelf}/{following}">next</a>'
        # Written before it is answered: afterwards the crawler may give its permit to another one.
        with _writing:
            _answered.append(
                {
                    "site": at.hostname,
                    "page": f"{shelf}/{page}",
                    "account": account,
                    "proxy": self.server.server_address[1],
                    "crawler": self.headers.get("User-Agent", ""),
                    "status": status,
                    "began": began,
                    "ended": time.monotonic(),
                }
            )
        self._answer(status, "text/html", link if following <= PAGES else "the end")

    def _answer(self, status: int, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:
            # The crawler was killed meanwhile.
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until killed."""
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), Proxy) for _ in range(4)]
    for server in servers[1:]:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    ports = [each.server_address[1] for each in servers]
    print("proxies", *(f"http://127.0.0.1:{port}" for port in ports), flush=True)
    servers[0].serve_forever()


if __name__ == "__main__":
    main()
