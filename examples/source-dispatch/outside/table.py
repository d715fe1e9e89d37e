#!/usr/bin/env python3
"""The user's database: a table of sources, each with its rule and its interval.

table.py make PATH COUNT URL      makes a table of COUNT sources whose pages are at URL
table.py change PATH COUNT URL    adds, changes and removes one row in 400 each
"""

import sqlite3
import sys

# By rule: its share of the sources, and the seconds between two visits. Most sources wait long.
RULES = {"news": (0.015, 4), "forum": (0.08, 120), "shop": (1.0, 3600)}
# That is 80 visits a second. The run has one collector for them, which can do some 25.
VIDEO = (400, 5)


def rows(count, url):
    """All rows of a new table."""
    number = 0
    sizes = {rule: (int(share * count), every) for rule, (share, every) in RULES.items()}
    for rule, (size, every) in {"video": VIDEO, **sizes}.items():
        for _ in range(min(size, count - number)):
            name = f"source-{number:06d}"
            yield name, rule, every, f"{url}/{rule}/{name}"
            number += 1


def make(path, count, url):
    """Makes the table and says what is in it."""
    columns = "id TEXT PRIMARY KEY, rule TEXT, every INTEGER, url TEXT"
    with sqlite3.connect(path) as table:
        table.execute(f"CREATE TABLE sources ({columns})")
        table.executemany("INSERT INTO sources VALUES (?, ?, ?, ?)", rows(int(count), url))
        group = "SELECT rule, count(*), every FROM sources GROUP BY rule, every ORDER BY every"
        for rule, size, every in table.execute(group):
            print(f"{rule:<6} {size:>6} sources, each every {every} s")


def change(path, count, url):
    """What a day of work does to the table, at once."""
    part = int(count) // 400
    with sqlite3.connect(path) as table:
        order = "SELECT id FROM sources WHERE rule = 'shop' ORDER BY id DESC LIMIT ?"
        shops = table.execute(order, (2 * part,)).fetchall()
        table.executemany("DELETE FROM sources WHERE id = ?", shops[:part])
        table.executemany("UPDATE sources SET every = 10 WHERE id = ?", shops[part:])
        new = [f"new-{number:06d}" for number in range(part)]
        table.executemany(
            "INSERT INTO sources VALUES (?, 'news', 4, ?)",
            ((name, f"{url}/news/{name}") for name in new),
        )
    print(f"{part} rows added, {part} set from every hour to every 10 s, {part} removed")


if __name__ == "__main__":
    {"make": make, "change": change}[sys.argv[1]](*sys.argv[2:])
