"""dramatiq with the middleware that it has by itself."""

import os

import dramatiq
import gauge
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(host="127.0.0.1", port=int(os.environ[gauge.PORT]))
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="bench")
def work(data):
    gauge.handle(data)
