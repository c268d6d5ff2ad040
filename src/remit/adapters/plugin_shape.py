"""Structural check of a plugin's class, which need not derive from Remit's."""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel

from remit.adapters.documentation import configuration_doc

B = TypeVar("B")


class Unfit(Exception):
    """A class that cannot be used as a plugin, with the reason."""


#: An alias, because inside the class `type` is an attribute.
_Model = type[BaseModel]


class Described:
    """The description of a plugin. The docstring of a class without a `summary` of its own becomes
    its summary."""

    #: Its name, such as in `adapterType`.
    type: ClassVar[str]
    #: One sentence; unless given, the docstring of the class.
    summary: ClassVar[str] = ""
    #: The keys of `adapterConfig`; the description of a field is its documentation.
    Config: ClassVar[_Model]
    #: Warnings for the person who configures it.
    safety: ClassVar[Sequence[str]] = ()
    #: Whole values of `adapterConfig` that work, each with a word on what it is for.
    examples: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ and "summary" not in vars(cls):
            cls.summary = " ".join(cls.__doc__.partition("\n\n")[0].split())

    @classmethod
    def documented(cls, around: Mapping[str, Any] | None = None) -> str:
        """Return the documentation of its settings; `around` are the other fields of an example."""
        about = (cls.type, cls.summary, cls.Config)
        return configuration_doc(*about, safety=cls.safety, examples=cls.examples, around=around)


def fitting(
    candidate: object, base: type[B], types: re.Pattern[str], parts: Sequence[str]
) -> type[B]:
    """Check that a class has a `type`, a `Config` and all of `parts`; return it as a subclass of
    `base`."""
    if not isinstance(candidate, type):
        raise Unfit("is not a class")
    name = getattr(candidate, "type", None)
    if not isinstance(name, str) or not types.fullmatch(name):
        raise Unfit(f"has no `type` like {types.pattern}")
    config = getattr(candidate, "Config", None)
    if not isinstance(config, type) or not issubclass(config, BaseModel):
        raise Unfit("has no `Config` that is a pydantic model")
    for part in parts:
        if getattr(candidate, part, None) in (None, getattr(base, part)):
            raise Unfit(f"has no `{part}()`")
    if issubclass(candidate, base):
        return candidate
    doc = inspect.getdoc(candidate) or ""
    more: dict[str, Any] = {}
    if not hasattr(candidate, "summary"):
        more["summary"] = doc.partition("\n")[0]
    return type(candidate.__name__, (candidate, base), more)
