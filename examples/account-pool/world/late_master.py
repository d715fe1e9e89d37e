"""A master that hangs between its query and its sync, until a file is there."""

import os
import sys
import time
from pathlib import Path

from tenure import Tenure

import sync

go_on = Path(sys.argv[1])
version, accounts = sync.read(sync.connect(os.environ["DATABASE_URL"]))
print(f"read version {version} and hangs", flush=True)
while not go_on.exists():
    time.sleep(0.02)
with Tenure() as t:
    print(sync.apply(t, version, accounts) or "done", flush=True)
