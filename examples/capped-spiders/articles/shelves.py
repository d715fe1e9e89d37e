"""A spider that crawls for jobs of a queue, under the caps of sites and with an account and a proxy of its own."""

import os

from tenure.scrapy import TenureSpider
from w3lib.http import basic_auth_header


class Shelves(TenureSpider):
    name = "shelves"
    queue = "shelves"
    custom_settings = {  # noqa: RUF012
        # Each request takes a slot of its site. The spider has one account and one proxy until it closes.
        "TENURE_NEEDS": [{"limit": "site:{host}"}],
        "TENURE_SESSION_NEEDS": [{"pool": "accounts"}, {"pool": "proxies"}],
        "TENURE_BAN_STATUS": [403],
        "TENURE_TTL": "2s",
        "CONCURRENT_REQUESTS": 64,
        "USER_AGENT": f"shelves/{os.getpid()}",
    }

    def tenure_request(self, request, lease):
        for resource in lease.resources:
            if resource.pool == "accounts":
                login = basic_auth_header(resource.id, resource.data["password"])
                request.headers["Authorization"] = login

    def parse(self, response):
        yield {"url": response.url, "by": response.meta["tenure_resources"]}
        for link in response.css("a.next::attr(href)").getall():
            yield response.follow(link)
