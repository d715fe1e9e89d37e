"""The pytest plugin: `tenure_server`, `tenure` and `tenure_clock`.

pytest loads it by itself where this package is installed; it starts nothing unless a test asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    # Not before a test asks: every run of pytest in this environment imports the plugin.
    from .client import Tenure
    from .testing import Clock, Server


@pytest.fixture(scope="session")
def tenure_server() -> Iterator[Server]:
    """A real server in memory, for all tests of the session."""
    from .testing import Server

    with Server() as server:
        yield server


@pytest.fixture(scope="session")
def _tenure_still_server() -> Iterator[Server]:
    from .testing import Server

    with Server(clock=True) as server:
        yield server


@pytest.fixture
def tenure(request: pytest.FixtureRequest) -> Iterator[Tenure]:
    """A client in a namespace of this test alone, where every app speaks to as well."""
    from .testing import namespace

    still = "tenure_clock" in request.fixturenames
    server: Server = request.getfixturevalue("_tenure_still_server" if still else "tenure_server")
    with namespace(server.url) as client:
        yield client


@pytest.fixture
def tenure_clock(tenure: Tenure) -> Clock:
    """The clock of the test: with this fixture, time stands still unless the test moves it."""
    from .testing import Clock

    return Clock(tenure)
