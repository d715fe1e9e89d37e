"""The page of the Python API agrees with the source."""

from __future__ import annotations

import os

import tenure
from python_api import PAGE, SECTIONS, page


def test_the_page_of_the_python_api_is_up_to_date() -> None:
    made = page()
    if os.environ.get("TENURE_WRITE_DOCS") == "1":
        PAGE.write_text(made)
    assert PAGE.read_text() == made, (
        "write it anew: TENURE_WRITE_DOCS=1 clients/python/check -k api"
    )


def test_every_public_name_is_on_the_page() -> None:
    shown = {name.partition(".")[2] for _, _, names in SECTIONS for name in names}
    # Awaited twins, and names that the page tells beside another.
    twins = {"AsyncJob", "AsyncLease", "AsyncTenure", "Job", "Need", "Outcome"}
    rest = {"__version__", "errors"}
    assert set(tenure.__all__) - shown - twins - rest == set()
