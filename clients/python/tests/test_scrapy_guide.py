"""The examples of the guide are a project that crawls."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from conftest import tenure_binary
from scrapy_site import Crawlers, Site
from tenure import Tenure
from test_readme import PACKAGE, blocks

GUIDE = PACKAGE.parents[1] / "docs" / "guides" / "scrapy.md"


@pytest.fixture
def project(tmp_path: Path, site: Site) -> dict[str, str]:
    """The guide's settings and spiders, for the local site; the environment that names them."""
    settings, *spiders = blocks(GUIDE)
    code = "\n".join(spiders).replace("https://example.com/", f"{site.url}/")
    (tmp_path / "guide_spiders.py").write_text(code)
    (tmp_path / "guide_settings.py").write_text(
        settings + '\nSPIDER_MODULES = ["guide_spiders"]\nTELNETCONSOLE_ENABLED = False\n'
    )
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"SCRAPY_SETTINGS_MODULE": "guide_settings", "PYTHONPATH": os.pathsep.join(paths)}


def test_the_spiders_of_the_guide_crawl(
    m: Tenure, site: Site, crawlers: Crawlers, project: dict[str, str]
) -> None:
    m.limits.set("site:*", concurrency=2, rate="10/1s")
    m.pools.sync("accounts", [{"id": "ann", "tags": ["cn"], "data": {"password": "geheim"}}])
    assert crawlers.crawl("shop", env=project) == 0
    job = m.push("pages", {"url": f"{site.url}/a"})
    assert crawlers.crawl("pages", settings={"TENURE_UNTIL_EMPTY": True}, env=project) == 0
    assert job.wait(5).get() == {"items": 1, "requests": 1}
    assert site.paths() == ["/", "/a"]
    assert "'seen_by': {'accounts': 'ann'}" in crawlers.log()
    assert f"'for': '{job.id}'" in crawlers.log()
    assert "geheim" not in crawlers.log()


def test_a_spider_of_the_guide_is_a_job(
    m: Tenure, site: Site, crawlers: Crawlers, project: dict[str, str]
) -> None:
    m.limits.set("site:*", concurrency=2)
    m.pools.sync("accounts", [{"id": "ann", "tags": ["cn"], "data": {"password": "geheim"}}])
    job = m.push("visits", {})
    # The command of the guide, with the worker's own options; it keeps the server's address.
    spider = [sys.executable, "-m", "scrapy", "crawl", "shop"]
    work = [tenure_binary(), "work", "visits", "--until-empty", "--pass-credentials", "--"]
    assert crawlers.run([*work, *spider], project).wait(40) == 0
    assert job.wait(5).get()["items"] == 1


def test_the_table_of_the_guide_has_every_setting() -> None:
    source = PACKAGE / "src" / "tenure" / "scrapy"
    code = "\n".join(path.read_text() for path in source.glob("*.py"))
    used = set(re.findall(r'"(TENURE_[A-Z_]+)"', code)) - {
        "TENURE_RESULT_FILE", "TENURE_OUTCOME_FILE", "TENURE_PROGRESS_FILE",
    }  # fmt: skip
    rows = "\n".join(
        line for line in GUIDE.read_text().splitlines() if line.startswith("| `TENURE")
    )
    assert used == set(re.findall(r"`(TENURE_[A-Z_]+)`", rows))
