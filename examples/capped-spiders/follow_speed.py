"""Keeps the cap like the row REPTILE_SPEED of the settings table: `follow_speed.py settings.db`."""

import sqlite3
import sys
import time

from tenure import Tenure

tenure = Tenure()
settings = sqlite3.connect(sys.argv[1])
while True:
    [speed] = settings.execute("SELECT value FROM settings WHERE name = 'REPTILE_SPEED'").fetchone()
    tenure.limits.set("articles", concurrency=speed)
    time.sleep(0.2)
