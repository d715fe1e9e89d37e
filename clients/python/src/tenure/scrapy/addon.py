"""The add-on: one line of settings switches on the middleware and the extension."""

from __future__ import annotations

from scrapy.settings import BaseSettings

from .downloader import DownloaderMiddleware
from .extension import JobExtension

#: Between the cookies (700) and the proxy (750): it sees an answer before a retry (550) replaces
#: it, and names the proxy before the proxy's password is read.
DOWNLOADER_ORDER = 725
_EXTENSION_ORDER = 500


class Addon:
    """`ADDONS = {"tenure.scrapy.Addon": 500}` in the settings of a project or a spider."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Switch on the middleware and the extension, unless the project places them itself."""
        settings.setdefault_in_component_priority_dict(
            "DOWNLOADER_MIDDLEWARES", DownloaderMiddleware, DOWNLOADER_ORDER
        )
        settings.setdefault_in_component_priority_dict("EXTENSIONS", JobExtension, _EXTENSION_ORDER)
