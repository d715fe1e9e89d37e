"""The spider of the first two pages."""

import json
import os

import scrapy


class Article(scrapy.Spider):
    """Reads one article, page by page."""

    name = "article"

    def __init__(self, url=None, **kwargs):
        super().__init__(**kwargs)
        if url is None:
            # Without scrapyd, `tenure work` gives the payload of the job in a file.
            with open(os.environ["TENURE_PAYLOAD_FILE"]) as payload:
                url = json.load(payload)["url"]
        self.start_urls = [url]

    def parse(self, response):
        """Follow the link to the next page."""
        following = response.css("a.next::attr(href)").get()
        if following:
            yield response.follow(following)
        else:
            yield {"url": response.url, "title": response.css("title::text").get()}
