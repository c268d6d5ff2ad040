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
    matches = [
        requirement
        for line in declared
        if (requirement := _EXTRA.match(line)) and requirement["extra"] == extra
    ]
    packages = [requirement["what"].strip().replace(" ", "") for requirement in matches] or [
        f"remit[{extra}]"
    ]
    command = [sys.executable, "-m", "pip", "install", *packages]
    return f"Install it with `{shlex.join(command)}`."
