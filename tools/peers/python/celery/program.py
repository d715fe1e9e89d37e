"""Celery. Ways: prefork, threads."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["PEERS_PORT"] = sys.argv[2]

import gauge  # noqa: E402
import redis  # noqa: E402
from handlers import app, work  # noqa: E402


class Celery(gauge.Peer):
    def push(self, payloads):
        # It has no call for many jobs; one connection and one producer for all is its fastest.
        with app.producer_pool.acquire(block=True) as producer:
            for data in payloads:
                work.apply_async((data,), producer=producer)

    def push_one(self, data):
        work.delay(data)

    def command(self, concurrency):
        quiet = ["--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "ERROR"]
        return [sys.executable, "-m", "celery", "-A", "handlers", "worker", "-P", self.way,
                "-c", str(concurrency), *quiet]  # fmt: skip

    def left(self):
        store = redis.Redis(port=self.port)
        return store.llen("celery") + store.hlen("unacked")


gauge.main(Celery)
