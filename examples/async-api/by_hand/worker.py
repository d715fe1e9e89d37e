"""The same by hand on Redis, as people write it: `run --by-hand` shows how it fails."""

import os
import sys
import time

import redis

import registry
import reports

r = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
PREFIX = os.environ.get("REDIS_PREFIX", "")
QUERIES, PROCESSING = PREFIX + "queries", PREFIX + "processing"
TRIES, FAILED = PREFIX + "tries", PREFIX + "failed"


def push(company: str) -> None:
    """Queue a company, unless somebody is at it."""
    if not r.sismember(PROCESSING, company):
        r.zadd(QUERIES, {company: 0})


def recover() -> None:
    """Queue again what a dead worker left in `processing`: the usual mend."""
    for company in r.smembers(PROCESSING):
        r.zadd(QUERIES, {company: 0})


def work() -> None:
    """Take queries for ever."""
    while True:
        popped = r.zpopmin(QUERIES)
        if not popped or popped[0][1] > time.time():
            if popped:
                r.zadd(QUERIES, dict(popped))  # not due yet
            time.sleep(0.2)
            continue
        company = popped[0][0]
        r.sadd(PROCESSING, company)
        answer = registry.ask(company, order=company)
        if answer.status == 200:
            reports.store(company, answer.body, fence=0)
        elif r.hincrby(TRIES, company, 1) >= 5:
            r.hset(FAILED, company, answer.status)
        else:
            r.zadd(QUERIES, {company: time.time() + answer.retry_after})
        r.srem(PROCESSING, company)


if __name__ == "__main__":
    if "--push" in sys.argv:
        push(sys.argv[-1])
    else:
        if "--recover" in sys.argv:
            recover()
        work()
