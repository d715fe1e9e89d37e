"""The spider of the third page."""

import os

from tenure.scrapy import TenureSpider
from w3lib.http import basic_auth_header


class Shelves(TenureSpider):
    """Crawls for jobs, under the caps of the sites, with an account and a proxy of its own."""

    name = "shelves"
    queue = "shelves"
    custom_settings = {  # noqa: RUF012
        # Each request takes a permit of its site; the spider has one account and one proxy.
        "TENURE_NEEDS": [{"limit": "site:{host}"}],
        "TENURE_SESSION_NEEDS": [{"pool": "accounts"}, {"pool": "proxies"}],
        "TENURE_BAN_STATUS": [403],
        "TENURE_TTL": "3s",
        "CONCURRENT_REQUESTS": 64,
        "USER_AGENT": f"shelves/{os.getpid()}",
    }

    def tenure_request(self, request, lease):
        """Log in with the account of the lease; its proxy is set without this."""
        for resource in lease.resources:
            if resource.pool == "accounts":
                login = basic_auth_header(resource.id, resource.data["password"])
                request.headers["Authorization"] = login

    def parse(self, response):
        """Follow the link to the next page, which belongs to the same job."""
        yield {"url": response.url, "by": response.meta["tenure_resources"]}
        for link in response.css("a.next::attr(href)").getall():
            yield response.follow(link)
