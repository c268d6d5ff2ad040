"""Checks of files from outside: bounded in size, of a known type, with matching content."""

from __future__ import annotations

MOST_INCOMING = 10
LARGEST_INCOMING = 20 * 1024 * 1024
LONGEST_FILE_NAME = 120

#: Leading bytes by media type; none for a type without fixed ones.
_BEGINNINGS: dict[str, tuple[bytes, ...]] = {
    "application/pdf": (b"%PDF-",),
    "application/zip": (b"PK\x03\x04", b"PK\x05\x06"),
    "application/vnd.openxmlformats-officedocument": (b"PK\x03\x04",),
    "application/vnd.oasis.opendocument": (b"PK\x03\x04",),
    "application/json": (),
    "application/xml": (),
    "application/x-yaml": (),
    "application/rtf": (b"{\\rtf",),
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
    "audio/": (),
    "video/": (),
    "text/": (),
}
#: Leading bytes of programs, which are refused under any type.
_PROGRAMS = (b"MZ", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"#!")


def refusal(name: str, media_type: str, size: int, content: bytes | None = None) -> str | None:
    """Return the reason to refuse a file; None if it is accepted. `content` is checked if given."""
    del name  # a name proves nothing about the content
    if size > LARGEST_INCOMING:
        return f"it is larger than {LARGEST_INCOMING >> 20} MiB"
    kind = media_type.partition(";")[0].strip().lower()
    known = next((prefix for prefix in _BEGINNINGS if kind.startswith(prefix)), None)
    if known is None:
        return f"files of type {kind[:60] or 'unknown'} are not taken"
    if content is None:
        return None
    if content.startswith(_PROGRAMS):
        return "it is a program"
    beginnings = _BEGINNINGS[known]
    if beginnings and not content.startswith(beginnings):
        return f"it is not what it says it is ({kind})"
    if known == "text/" and b"\x00" in content[:8192]:
        return f"it is not what it says it is ({kind})"
    return None
