"""Put the binary into the wheel, and tell by its needs where the wheel can be installed."""

from __future__ import annotations

import os
import platform
import sys
import sysconfig
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: What every Linux with glibc has; PEP 600 lets a manylinux wheel need these.
_EVERYWHERE = {
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libgcc_s.so.1",
}


class BinaryHook(BuildHookInterface[Any]):
    """Adds the program that TENURE_SERVER_BINARY names as the command `tenure`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the binary and the tag."""
        named = os.environ.get("TENURE_SERVER_BINARY", "")
        binary = Path(named)
        if not binary.is_absolute() or not binary.is_file():
            raise SystemExit(
                "TENURE_SERVER_BINARY must be the absolute path of a `tenure` binary, not "
                f'"{named}"; clients/python/wheels sets it'
            )
        build_data["shared_scripts"][str(binary)] = "tenure"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform_tag(binary)}"


def platform_tag(binary: Path) -> str:
    """Name the oldest platform that runs a binary, as far as the binary says it."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    if not sys.platform.startswith("linux"):
        return here
    with binary.open("rb") as file:
        elf = ELFFile(file)
        dynamic = elf.get_section_by_name(".dynamic")
        needed = elf.get_section_by_name(".gnu.version_r")
        libraries = {
            tag.needed
            for tag in (dynamic.iter_tags("DT_NEEDED") if dynamic is not None else ())
            if not tag.needed.startswith("ld-linux")
        }
        versions = {
            tuple(int(part) for part in each.name[len("GLIBC_") :].split("."))
            for _, names in (
                needed.iter_versions() if isinstance(needed, GNUVerNeedSection) else ()
            )
            for each in names
            if each.name.startswith("GLIBC_2")
        }
    # Without glibc, or with a library of this machine, nothing is known about other machines.
    if not versions or not libraries <= _EVERYWHERE:
        return here
    major, minor = max(versions)[:2]
    return f"manylinux_{major}_{minor}_{platform.machine()}"
