"""Users, each of whom has an article read: one call, which is answered at once, however full it is.

As a command: `push_articles.py scrapyd http://site.example 1 2 3`, or `command` for `scrapyd`.
"""

import json
import os
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

TENURE = os.environ.get("TENURE_URL", "http://127.0.0.1:7171")


def push(way: str, url: str, article: str) -> float:
    """Ask for one article, and return how long the answer took."""
    if way == "scrapyd":
        payload = {"project": "articles", "spider": "article", "args": {"url": url}}
    else:
        payload = {"url": url}
    job = {
        "id": f"article-{article}",
        "queue": "articles",
        "payload": payload,
        "needs": [{"limit": "articles"}],
        # Workers are killed all the time here, which says nothing against a job.
        "retry": {"max_attempts": 5, "max_lost": 0},
    }
    began = time.monotonic()
    call = urllib.request.Request(f"{TENURE}/v1/jobs", json.dumps(job).encode())
    call.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(call, timeout=30) as answer:
        json.load(answer)
    return time.monotonic() - began


def main(way: str, site: str, *articles: str) -> None:
    """Let as many users as there are articles push at the same time."""
    with ThreadPoolExecutor(len(articles)) as users:
        took = users.map(lambda each: push(way, f"{site}/articles/{each}/1", each), articles)
    slowest = max(took)
    print(f"{len(articles)} users at once; the slowest answer took {slowest * 1000:.0f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:])
