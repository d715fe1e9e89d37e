"""The same without Tenure in it: tenure work reports --http http://127.0.0.1:8200"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import registry
import reports


class Fetch(BaseHTTPRequestHandler):
    """One request is one run of a job, and one call of the registry."""

    def do_POST(self) -> None:
        """Ask for a report and store it; the answer says how the run ended."""
        company = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["company"]
        try:
            answer = registry.ask(company, order=self.headers["Idempotency-Key"])
        except OSError as error:
            return self.answer(502, {"error": f"no answer of the registry: {error}"})
        if answer.status == 202:
            return self.answer(202, {}, {"Retry-After": answer.retry_after})
        if answer.status == 429:
            pause = {"Retry-After": answer.retry_after, "Tenure-Pause": "registry"}
            return self.answer(429, {}, pause)
        if answer.status == 404:
            return self.answer(422, {"error": f"the registry knows no company {company}"})
        if answer.status != 200:
            return self.answer(502, {"error": f"the registry answered {answer.status}"})
        if not reports.store(company, answer.body, int(self.headers["Tenure-Fence"])):
            print(f"{company}: refused, a newer holder has stored its report", flush=True)
        self.answer(200, answer.body)

    def answer(self, status: int, body: dict[str, Any], headers: Any = None) -> None:
        """Send an answer."""
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        for name, value in (headers or {}).items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        """Log no line for each request."""


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8200
    server = ThreadingHTTPServer(("127.0.0.1", port), Fetch)
    print(f"listening on http://127.0.0.1:{port}", flush=True)
    server.serve_forever()
