"""Settings of the Scrapy project."""

import os
import time

# Only in this example: the witness counts the processes that crawl, from their first moment.
from outside import presence

presence.enter()

# Stands for settings that load a model or ask a vault: the process is there, and crawls nothing.
time.sleep(float(os.environ.get("SETTINGS_TAKE", "2")))

BOT_NAME = "articles"
SPIDER_MODULES = ["articles.spiders", "articles.shelves"]
ADDONS = {"tenure.scrapy.Addon": 500}
LOG_LEVEL = "INFO"
TELNETCONSOLE_ENABLED = False
ROBOTSTXT_OBEY = False
