"""Scrapy: slots and accounts for requests, spiders fed by jobs, and the job whose spider this is.

Needs Scrapy, which the extra `scrapy` brings, and the asyncio reactor, which is Scrapy's default.
"""

from __future__ import annotations

from .addon import Addon
from .downloader import DownloaderMiddleware, RequestLeaseLost, RequestNotGranted
from .extension import JobExtension
from .spider import JobCounts, RequestsFailed, TenureSpider

__all__ = [
    "Addon",
    "DownloaderMiddleware",
    "JobCounts",
    "JobExtension",
    "RequestLeaseLost",
    "RequestNotGranted",
    "RequestsFailed",
    "TenureSpider",
]
