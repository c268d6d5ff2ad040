"""What every program is shown of the machine, whichever sandbox holds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: What programs need of the system; read only.
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt")
SYSTEM_FILES = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)


def of_system(path: Path) -> bool:
    return inside(path, [Path(one) for one in SYSTEM])


def inside(path: Path, folders: Sequence[Path]) -> bool:
    return any(path == one or one in path.parents for one in folders)
