"""Celery without results, events and rate limits, which nobody reads here."""

import os

import gauge
from celery import Celery

app = Celery("handlers", broker=f"redis://127.0.0.1:{os.environ[gauge.PORT]}/0")
app.conf.update(
    task_ignore_result=True,
    worker_send_task_events=False,
    worker_disable_rate_limits=True,
    # The documentation's advice for short tasks: up to this many messages ahead for each process.
    worker_prefetch_multiplier=64,
    broker_connection_retry_on_startup=True,
)


@app.task(name="work")
def work(data):
    gauge.handle(data)
