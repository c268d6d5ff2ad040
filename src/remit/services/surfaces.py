"""Surfaces of a verb: declared beside its name, built by the entry points.

    @command(
        "nouns.verb",
        AsTool("noun_verb", id="noun"),
        AsRoute("POST /nouns/{id}/verb", "verb_noun"),
        AsCommand("noun verb", said="{title}: done."),
    )

Words for people and models are the first paragraph of the verb's docstring unless `words` says
otherwise. A parameter is called the same everywhere (in camelCase over HTTP) unless `spelled` says
otherwise.
"""

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property

_PLACE = re.compile(r"(?<![a-z-])([a-z-]+)/\{([A-Za-z]+)\}")


@dataclass(frozen=True)
class AsTool:
    """A tool of the MCP server."""

    name: str
    #: Short: every agent pays for it in every session.
    words: str = ""
    _: KW_ONLY
    #: The parameter that is called `id` there.
    id: str = ""
    spelled: Mapping[str, str] = field(default_factory=dict)
    #: Parameters that agents do not choose.
    without: tuple[str, ...] = ()
    #: Parameters with a fixed value.
    given: Mapping[str, object] = field(default_factory=dict)
    #: The kind of thing that an agent must deal with to be offered the tool; empty: offered to all.
    offer: str = ""
    #: Key of the list in the tool's answer, if the verb returns one.
    answer: str = ""

    def called(self, parameter: str) -> str:
        return "id" if parameter == self.id else self.spelled.get(parameter, parameter)


@dataclass(frozen=True)
class AsRoute:
    """A route below `/api`. The parameter in `/outcomes/{id}` is `outcome`, that in
    `/companies/{companyId}` is `company`, unless one is `spelled` so; the others are the body or,
    for GET and DELETE, the query."""

    #: Method and path.
    address: str
    #: Its `operationId`, which clients generate code from.
    operation: str
    status: int = 200
    _: KW_ONLY
    words: str = ""
    spelled: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    #: Optional parameters of the verb that a request must have.
    needs: tuple[str, ...] = ()
    #: Of a list in pages: the key of its rows that the next page begins after. The verb has
    #: `limit`, and `after` or, newest first, `before`; otherwise it returns all, and they are paged
    #: by id.
    page: str = ""
    #: Whether the answer is the agent that the verb changed, limited to what the caller may see,
    #: with the rest of the verb's answer beside it.
    as_seen: bool = False
    #: The verb that previews this one; it is called if `dryRun` is true.
    preview: str = ""

    def called(self, parameter: str) -> str:
        """The name of a parameter on the wire, in the path as elsewhere."""
        head, *rest = parameter.split("_")
        usual = head + "".join(part.capitalize() for part in rest)
        return self.in_path.get(parameter) or self.spelled.get(parameter) or usual

    @property
    def method(self) -> str:
        return self.address.split()[0]

    @property
    def path(self) -> str:
        return self.address.split()[1]

    @property
    def tag(self) -> str:
        """The kind of thing that the route is about; singletons of a company are the company's."""
        first, *more = [part for part in self.path.split("/")[1:] if part and "{" not in part]
        return more[0] if first == "companies" and more and more[0].endswith("s") else first

    @cached_property
    def in_path(self) -> Mapping[str, str]:
        """The placeholders of the path, by parameter."""
        parameters = {name: parameter for parameter, name in self.spelled.items()}
        return {
            parameters.get(name)
            or (_singular(noun) if name == "id" else name.removesuffix("Id")): name
            for noun, name in _PLACE.findall(self.path)
        }


@dataclass(frozen=True)
class AsCommand:
    """A command of `remit`. Required parameters are arguments, the others options; it calls the
    verb's first route. Its group defines how a list is drawn (`Group.rows`)."""

    #: Group and command.
    name: str
    words: str = ""
    _: KW_ONLY
    #: One line after success, with keys of the answer in braces.
    said: str = ""
    without: tuple[str, ...] = ()
    #: Options with another name than their parameter.
    spelled: Mapping[str, str] = field(default_factory=dict)
    #: Command lines for its help, each with a remark after two spaces and #. A test plays them.
    examples: tuple[str, ...] = ()


Surface = AsTool | AsRoute | AsCommand


def _singular(noun: str) -> str:
    return noun.removesuffix("ies") + "y" if noun.endswith("ies") else noun.removesuffix("s")
