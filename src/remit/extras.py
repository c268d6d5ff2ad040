"""Installation hints for optional dependencies, as commands that work as written."""

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires

_EXTRA = re.compile(r"^(?P<what>[^;]{1,200}); *extra *== *['\"](?P<extra>[a-z0-9-]{1,40})['\"]$")


def how_to_install(extra: str) -> str:
    """Return a hint with the pip command for this Python; it names the packages of the extra, so
    that Remit itself need not be on a package index."""
    try:
        declared = requires("remit") or []
    except PackageNotFoundError:
        declared = []
    found = [one for line in declared if (one := _EXTRA.match(line)) and one["extra"] == extra]
    packages = [one["what"].strip().replace(" ", "") for one in found] or [f"remit[{extra}]"]
    command = [sys.executable, "-m", "pip", "install", *packages]
    return f"Install it with `{shlex.join(command)}`."
