"""Git LFS: detection of pointers, and of files that should be pointers.

A pointer is a small file in place of a large one, whose contents lie in a store beside the remote.
Agents cannot reach such a store, so a proposal that needs one is refused: the contents would be
missing, or in git itself, where other clones do not expect them.
"""

import re

from remit.errors import BadInput

_LONGEST_POINTER = 1024
_POINTER = re.compile(
    rb"version https?://(?:git-lfs\.github\.com|hawser\.github\.com|git-media\.io)/\S+\n"
)
_STEP = "Leave it out of every commit of the branch, and ask a person to add it with Git LFS."


def is_pointer(content: bytes) -> bool:
    return len(content) <= _LONGEST_POINTER and _POINTER.match(content) is not None


def kept_outside(attributes: bytes) -> set[str]:
    """Return the paths that belong into LFS, from the output of `git check-attr -z filter`."""
    fields = attributes.split(b"\0")[:-1]
    return {
        path.decode()
        for path, value in zip(fields[::3], fields[2::3], strict=True)
        if value == b"lfs"
    }


def refuse_pointer(path: str) -> BadInput:
    return BadInput(
        f"{path[:200]} is a Git LFS pointer, and Remit does not upload its object.",
        _STEP,
        code="lfs",
    )


def refuse_contents(path: str) -> BadInput:
    return BadInput(
        f"{path[:200]} is kept in Git LFS by .gitattributes, and would be in git itself.",
        _STEP,
        code="lfs",
    )
