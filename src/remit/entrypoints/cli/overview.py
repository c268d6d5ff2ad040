"""The commands of `remit` by section, and the names of other programs that stand for them."""

import json
from pathlib import Path
from typing import Final, NamedTuple


class Entry(NamedTuple):
    """Module of a command and its line in the overview, so that the overview imports no command."""

    module: str
    help: str


#: By section, in the order of the help: modules, and the commands in each.
_SECTIONS: Final = {
    "Everyday": (
        ("instance.lifecycle", "up open"),
        ("mail.mail", "send inbox needs-you"),
        ("work.approval", "approve reject"),
        ("instance.top", "top"),
        ("company.halt", "stop resume"),
        ("work.event", "why"),
        ("instance.doctor", "doctor"),
    ),
    "Manage": (
        ("company.company", "company"),
        ("company.user", "user"),
        ("company.agent", "agent"),
        ("company.org", "org"),
        ("work.outcome", "outcome"),
        ("work.approval", "approval"),
        ("mail.question", "question"),
        ("mail.schedule", "schedule"),
        ("company.grant", "grant"),
        ("work.kb", "kb"),
        ("work.run", "run job"),
        ("work.event", "event"),
        ("company.adapter", "adapter"),
        ("company.account", "account"),
        ("connections.repo", "repo folder"),
        ("work.change", "change"),
        ("connections.secret", "secret"),
        ("connections.mcp", "mcp"),
        ("mail.bind", "bind"),
        ("mail.link", "link"),
        ("mail.notify", "notify"),
    ),
    "Mail": (
        ("mail.mail", "read reply cancel revive"),
        ("mail.confirm", "confirm"),
    ),
    "The instance": (
        ("instance.lifecycle", "down"),
        ("instance.status", "status"),
        ("instance.lifecycle", "serve worker"),
        ("instance.login", "login"),
        ("instance.backup", "backup restore"),
    ),
    "A whole company": (
        ("company.apply", "apply"),
        ("work.event", "as-of"),
        ("instance.simulate", "demo simulate"),
    ),
    "This command line": (("instance.about", "help completion version"),),
    "For the programs of agents": (("connections.mcp", "mcp-stdio"),),
}
#: The first line of each command's help, in a generated file like the declared commands.
OVERVIEW: Final = Path(__file__).with_name("overview.json")
_HELP: Final = json.loads(OVERVIEW.read_text())
COMMANDS: Final[dict[str, dict[str, Entry]]] = {
    section: {
        name: Entry(module, _HELP.get(name, ""))
        for module, names in modules
        for name in names.split()
    }
    for section, modules in _SECTIONS.items()
}
BY_NAME: Final = {name: entry for section in COMMANDS.values() for name, entry in section.items()}

#: Earlier names and names from other programs, and the commands that they stand for.
ALIASES: dict[str, tuple[str, ...]] = {
    "go": ("resume",),
    "ls": ("agent", "list"),
    "ps": ("run", "list"),
    "logs": ("run", "tail"),
    "companies": ("company", "list"),
    "files": ("kb", "list"),
}
#: Nouns whose plural is an alias of `list`, as in other programs: `remit agents`.
_LISTED: Final = (
    *("agent", "run", "outcome", "approval", "event", "user", "question", "job", "grant"),
    *("schedule", "secret", "repo", "folder", "change", "account", "adapter"),
)
ALIASES |= {f"{noun}s": (noun, "list") for noun in _LISTED}
#: Names from other programs that may mean several commands here.
ADVICE = {
    "rm": "`remit agent terminate NAME` ends an agent, `remit outcome close ID` an outcome",
    "kill": "`remit agent stop NAME` ends what an agent is doing, `remit run cancel ID` a run",
    "get": "`remit agent show NAME` shows an agent; others have `show`, too",
    "create": "`remit agent create NAME` makes an agent, `remit outcome create` an outcome",
    "hire": "`remit agent hire NAME` asks for an agent, `remit agent create NAME` makes one",
    "tail": "`remit run tail NAME` follows a run, `remit event tail` the record",
    "init": "`remit up` makes what it needs and runs it",
    "budget": "`remit agent budget` shows what agents may spend, `remit agent set NAME` changes it",
    "start": "`remit up` runs the instance, `remit resume NAME` lets an agent work again",
    "pause": "`remit agent pause NAME` pauses one agent, `remit stop NAME` halts it with all below",
}
ADVICE |= dict.fromkeys(("delete", "remove"), ADVICE["rm"])
ADVICE |= dict.fromkeys(("show", "describe", "inspect"), ADVICE["get"])
ADVICE |= dict.fromkeys(("budgets", "spend"), ADVICE["budget"])
ADVICE |= dict.fromkeys(("new", "add"), ADVICE["create"])
