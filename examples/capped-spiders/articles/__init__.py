"""The user's Scrapy project."""
