"""Bill of materials of a release: what an installation brings along, as CycloneDX JSON.

It is made from `requirements.lock`, whose versions and hashes are those that were tested, so it
needs no library and no network. Extras that the lock holds are components like others.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
#: Of the build, not of an installation.
_ONLY_OF_BUILDS = frozenset({"editables", "hatchling", "pathspec", "trove-classifiers"})


def document(lock: str, number: str, moment: int, wheel_sha256: str) -> dict[str, Any]:
    """Return the bill of materials; equal arguments give the same text."""
    own = f"pkg:pypi/remit@{number}"
    parts = sorted(_components(lock), key=lambda part: str(part["bom-ref"]))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{own}#{wheel_sha256}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).isoformat().replace("+00:00", "Z"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "remit",
                "version": number,
                "purl": own,
                "licenses": [{"license": {"id": "MIT"}}],
                "hashes": [{"alg": "SHA-256", "content": wheel_sha256}],
            },
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def as_text(made: dict[str, Any]) -> str:
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _components(lock: str) -> Iterator[dict[str, Any]]:
    """Yield a component for each pinned requirement of a lock file."""
    lines = [line for line in lock.splitlines() if not line.lstrip().startswith("#")]
    for entry in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not entry.strip():
            continue
        requirement = Requirement(entry.partition("--hash")[0].strip())
        name = canonicalize_name(requirement.name)
        if name in _ONLY_OF_BUILDS:
            continue
        (pin,) = requirement.specifier
        ref = f"pkg:pypi/{name}@{pin.version}"
        part: dict[str, Any] = {
            "type": "library",
            "bom-ref": ref,
            "name": name,
            "version": pin.version,
            "purl": ref,
            # One hash for each file that may be installed, depending on the machine.
            "hashes": [{"alg": "SHA-256", "content": one} for one in _HASH.findall(entry)],
        }
        if requirement.marker:
            marker = {"name": "remit:marker", "value": str(requirement.marker)}
            part["properties"] = [marker]
        expression = _licence(name, pin.version)
        if expression:
            part["licenses"] = [{"expression": expression}]
        yield part


def _licence(name: str, number: str) -> str:
    """Return the licence expression that an installed package of this version declares."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return ""
    if found.version != number or "License-Expression" not in found.metadata:
        return ""
    return found.metadata["License-Expression"]


def write(lock: Path, target: Path, number: str, moment: int, wheel_sha256: str) -> int:
    """Write the bill of materials; returns how many components it has."""
    made = document(lock.read_text(encoding="utf-8"), number, moment, wheel_sha256)
    target.write_text(as_text(made), encoding="utf-8")
    return len(made["components"])
