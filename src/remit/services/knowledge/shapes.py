"""Shapes of files."""

from __future__ import annotations

from typing import Annotated, NotRequired, TypedDict

from remit.model.organisation.grant import Level
from remit.model.work.file import Access, FileKind
from remit.services.shape_basics import Moment, OwnedShape


class FileShape(OwnedShape):
    """A file. Keys about its contents are left out for callers who may not read it."""

    kind: NotRequired[Annotated[str, FileKind]]
    description: str
    unlisted: bool
    version: NotRequired[int]
    hash: NotRequired[str]
    size: NotRequired[int]
    created_at: Moment
    updated_at: NotRequired[Moment]
    level: NotRequired[Annotated[str, Level]]


class DescribedShape(TypedDict):
    id: str
    description: str


class LinksShape(TypedDict):
    #: Only for callers who may read it.
    links: NotRequired[list[str]]


class FileWithLinksShape(FileShape, LinksShape):
    linked_from: list[DescribedShape]


class VersionShape(TypedDict):
    number: int
    hash: str
    size: int
    at: Moment
    agent_id: str | None
    user_id: str | None
    run_id: str | None


class AccessShape(TypedDict):
    id: NotRequired[int]
    at: Moment
    access: Annotated[str, Access]
    version: int
    agent_id: str | None
    user_id: str | None
    run_id: str | None


class ReadableShape(FileShape):
    """A version of a file that the caller may read now."""

    is_text: bool
    current_version: int
    #: Only of the newest version of a document that Remit writes.
    heading: str | None


class FoundTextShape(FileShape):
    excerpt: str
    #: The message whose text it is.
    message_id: str | None


class FoundTextsShape(TypedDict):
    files: list[FoundTextShape]
    #: Continues the search; None at its end.
    before: str | None


class StoredShape(TypedDict):
    """Contents that are durable before the row that references them is committed."""

    sha256: str
    size: int
    is_text: bool
    #: Ids of the files that a text links to.
    links: tuple[str, ...]
