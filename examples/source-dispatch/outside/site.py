#!/usr/bin/env python3
"""The sites of all sources, in one process: the witness, since it logs each visit's begin and end.

    site.py LOG [--slow SHARE] [--seed N]

A line of the log is a letter, a moment, the source and the collector. The letter is B for the
begin of a visit, E for its answer (followed by the status), and X if the collector hung up or
died before the answer: the kernel closes the connections of a dead process.
"""

import argparse
import asyncio
import os
import random
import signal
import time

# Seconds that an answer takes, by rule.
LATENCY = {"news": (0.03, 0.1), "forum": (0.05, 0.15), "shop": (0.05, 0.2), "video": (0.2, 0.3)}
# Some take longer than a lock by time alone can last if a crash shall not block for long.
SLOW = (4.0, 5.0)
CHANGED, BROKEN = 0.3, 0.01


class Log:
    """Collects lines, and appends them to the file ten times a second."""

    def __init__(self, path):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.lines = []

    def add(self, letter, source, collector, status=""):
        """Notes what happens now."""
        self.lines.append(f"{letter} {time.time():.6f} {source} {collector} {status}\n")

    def write(self):
        """Writes what was collected."""
        if self.lines:
            os.write(self.file, "".join(self.lines).encode())
            self.lines.clear()


class Visit(asyncio.Protocol):
    """One connection, which is one visit."""

    def __init__(self, log, dice, slow):
        self.log, self.dice, self.slow = log, dice, slow
        self.received = b""
        self.who = None
        self.timer = None

    def connection_made(self, transport):
        """A collector has connected. The visit begins with its request."""
        self.transport = transport

    def data_received(self, data):
        """Reads the request, and answers it after a while."""
        self.received += data
        if self.who or b"\r\n\r\n" not in self.received:
            return
        head, *lines = self.received.decode().split("\r\n")
        _, rule, source = head.split()[1].split("/")
        collector = next(line[12:] for line in lines if line.startswith("User-Agent: "))
        self.who = source, collector
        self.log.add("B", source, collector)
        slow = self.dice.random() < self.slow
        seconds = self.dice.uniform(*(SLOW if slow else LATENCY[rule]))
        self.timer = asyncio.get_running_loop().call_later(seconds, self.answer)

    def answer(self):
        """Answers: changed, not changed, or broken."""
        draw = self.dice.random()
        status, length = "304 Not Modified", ""
        if draw < BROKEN + CHANGED:
            status, length = "200 OK" if draw > BROKEN else "500 Broken", "Content-Length: 0\r\n"
        # Before the answer is sent: no collector can know of the end before the log does.
        self.log.add("E", *self.who, status[:3])
        self.timer = None
        self.transport.write(f"HTTP/1.1 {status}\r\n{length}Connection: close\r\n\r\n".encode())
        self.transport.close()

    def connection_lost(self, exc):
        """The connection is closed, by whichever side."""
        if self.timer:
            self.timer.cancel()
            self.log.add("X", *self.who)


async def main():
    """Serves until SIGTERM."""
    options = argparse.ArgumentParser()
    options.add_argument("log")
    options.add_argument("--slow", type=float, default=0.003)
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    log, dice = Log(args.log), random.Random(args.seed)
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, over.set)
    server = await loop.create_server(
        lambda: Visit(log, dice, args.slow), "127.0.0.1", 0, backlog=1024
    )
    print(f"listening on http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    while not over.is_set():
        await asyncio.sleep(0.1)
        log.write()


if __name__ == "__main__":
    asyncio.run(main())
