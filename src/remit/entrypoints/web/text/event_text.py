"""Events as sentences with links."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.entrypoints.web.text import common_queries, cron_words
from remit.entrypoints.web.text.words import micros
from remit.ids import is_id
from remit.model.execution.budget import Kind
from remit.model.text import plural
from remit.services.screens import name_lookup

_Words = Mapping[str, str | tuple[str, str]]
#: The verbs of actions in the infinitive, and in the past tense where that is not formed as usual.
_VERBS: Final[_Words] = {
    # The same word as in the record.
    **{
        verb: verb
        for verb in (
            *("add", "answer", "appoint", "approve", "ask", "call", "change", "clone", "close"),
            *("complete", "create", "decide", "delegate", "delete", "deliver", "download", "end"),
            *("export", "hire", "import", "link", "merge", "operate", "pause", "prepare"),
            *("propose", "publish", "reinstate", "reject", "remove", "reopen", "request"),
            *("restart", "restore", "resume", "retry", "return", "revoke", "start", "terminate"),
            *("test", "update", "use", "verify"),
        )
    },
    "cancel": ("withdraw", "withdrew"),
    "check": "test",
    "comment": "comment on",
    "put_back": "requeue",
    "read": "view",
    "remind": ("send a reminder about", "sent a reminder about"),
    "stop": ("stop", "stopped"),
    "submit": ("submit", "submitted"),
    "write": ("write", "wrote"),
}
#: Actions whose verb alone says too little, or something else.
_WORDS: Final[_Words] = {
    "account.open": ("open", "reopened"),
    "agent.lose_conversation": ("drop the conversation of", "dropped the conversation of"),
    "agent.new_session": "start a new conversation of",
    "backup.create": ("make", "made"),
    "backup.remove": "delete",
    "board.token": "replace the board's token of",
    "repo.checks": ("set the checks of", "set the checks of"),
    "change.check": "start checks again on",
    "change.checked": "check",
    "change.close_request": "close the request of",
    "change.closed": "close",
    "change.conflicts": "check for conflicts in",
    "change.intend": "announce",
    "change.merged": ("find merged", "found merged"),
    "change.observe": "synchronise",
    "change.outside": "receive outside comments on",
    "change.push": ("push", "began to push"),
    "change.release": ("release to the forge", "released to the forge"),
    "change.request": "update the request for",
    "change.keep": "propose the same files again in",
    "change.tell": "post comments to the forge about",
    "chat.flood": ("hold back messages of", "held back messages of"),
    "chat.refused": "refuse",
    "chat.unheard": "ignore a stranger in",
    "chat.unlinked": (
        "take a message from an unknown account in",
        "got a message from an unknown account in",
    ),
    "chat.handled": "handle a message in",
    "chat.unhandled": ("handle a message in", "could not handle a message in"),
    "check.fail": ("run", "could not run"),
    "errand.done": "finish",
    "errand.fail": ("finish", "could not finish"),
    "notice.deliver": ("send", "sent"),
    "notice.fail": ("send", "could not send"),
    "post.deliver": "post",
    "post.undelivered": ("post", "could not post"),
    "company.restore_root": "restore the root agent of",
    "issue.take": ("take on an issue of", "took on an issue of"),
    "issue.tell": "answer an issue of",
    "approval.adopt": "record",
    "token.adopt": "record",
    "linked_account.code": "create a code for",
    "linked_account.revoke": "unlink",
    "agent.abort": ("cancel a run of", "cancelled the run of"),
    "agent.configure": ("configure", "changed the configuration of"),
    "agent.control": ("control", "controlled"),
    "agent.lend": ("lend skills to", "lent skills to"),
    "agent.take_back": ("take skills back from", "took skills back from"),
    "repo.look_into": ("read files of", "read files of"),
    "agent.permit": "change the permissions of",
    "agent.purge": "erase the personal data of",
    "agent.wake": ("wake", "woke"),
    "approval.collect": "receive the answer to",
    "approval.expire": ("let expire", "let expire"),
    "approval.refer": ("refer", "referred"),
    "approval.resubmit": ("resubmit", "resubmitted"),
    "approval.revise": "return",
    "binding.change": ("change", "changed the settings of"),
    "binding.create": "connect",
    "binding.delete": "disconnect",
    "binding.restore": "reconnect",
    "budget.raise": "raise the budget of",
    "budget.reserve": "reserve a budget for",
    "budget.return": ("take back budget from", "took back unspent budget from"),
    "budget.stop": ("stop for lack of budget", "stopped for lack of budget:"),
    "capability.refuse": "refuse a permission to",
    "company.accept": "accept the import of",
    "company.apply": "apply a description to",
    "company.change": ("change", "changed the settings of"),
    "company.create": "found",
    "company.signing_key": ("make a signing key for", "made a signing key for"),
    "confirmation.confirm": ("confirm a decision by e-mail about", "confirmed by e-mail:"),
    "confirmation.dismiss": ("dismiss a decision by e-mail about", "dismissed by e-mail:"),
    "config.change": "change the configuration of",
    "config.propose": "propose a configuration for",
    "config.read": "view the configuration of",
    "file.audit": "view the access log of",
    "file.create": ("create a file", "created the file"),
    "file.describe": "rename",
    "file.read": ("read", "read"),
    "file.see": "view",
    "folder.bind": ("connect", "connected"),
    "folder.mount": ("connect", "connected"),
    "folder.remove": ("disconnect", "disconnected"),
    "grant.give": "grant",
    "halt.go": "resume",
    "job.cancel": ("cancel", "cancelled"),
    "job.end": "finish",
    "job.lost": ("lose", "lost"),
    "job.unanswered": ("answer for", "could not answer for"),
    "job.wait": "postpone",
    "key.change": "change a key of",
    "key.read": "view the keys of",
    "level.change": "change the permission level of",
    "limit.reach": "reach a limit of",
    "log.submit": ("write in the log", "logged"),
    "log.write": ("write in the log", "logged"),
    "mail.due": ("deliver", "delivered scheduled mail"),
    "mcp_server.add": "connect",
    "mcp_server.replace": "change",
    "message.ack": ("deal with the mail of", "dealt with the mail of"),
    "message.discard": "dismiss",
    "message.read": ("read", "read"),
    "message.revive": "requeue",
    "message.send": ("send", "sent"),
    "message.undelivered": ("deliver", "could not deliver"),
    "notice.set": "change the notifications of",
    "notice.try": "test the notifications of",
    "org.change": "reorganise",
    "org.undo": ("undo a reorganisation", "undid a reorganisation"),
    "outcome.create": ("create a part of", "created"),
    "outcome.finish": ("complete or close", "finished"),
    "outcome.read": ("read", "viewed"),
    "outcome.reclaim": ("take back", "took back"),
    "policy.change": "change the permission levels of",
    "policy.read": "view the permission levels of",
    "question.pass_on": "pass on",
    "repo.sync": "synchronise",
    "run.report": "report on",
    "run.undelivered": ("deliver to", "could not deliver to"),
    "schedule.add": "create",
    "schedule.cancel": ("cancel", "cancelled"),
    "schedule.failed": ("carry out", "could not carry out"),
    "secret.set": ("set", "set"),
    "version.start": "start",
}
#: Words for a resource that has no name of its own.
_KINDS: Final = {
    "agent": "an agent",
    "outcome": "an outcome",
    "kb_file": "a file",
    "approval": "an approval",
    "message": "a message",
    "run": "a run",
    "event": "an event",
    "company": "the company",
    "change": "a change",
    "check": "a check",
    "errand": "a task at the remote repository",
    "notice": "a notice",
    "post": "a post",
    "account": "an account",
    "binding": "a channel",
    "folder": "a folder",
    "linked_account": "a chat account",
    "grant": "a permission",
    "job": "a background job",
    "question": "a question",
    "schedule": "a schedule",
    "session": "a session",
    "token": "an access token",
    "user": "somebody",
    "log": "",
    "org": "",
    "events": "the record",
}
#: Where the page of a resource is, if there is one.
_PAGES: Final = {
    "agent": "/agents/",
    "outcome": "/outcomes/",
    "kb_file": "/files/",
    "approval": "/approvals/",
    "message": "/inbox/",
    "run": "/runs/",
    "event": "/events/",
    "company": "/companies/",
    "change": "/changes/",
}
#: Kinds of events that the filter offers; others can be typed into the address.
NOUNS: Final = (
    ("agent", "Agents"),
    ("approval", "Approvals"),
    ("budget", "Budgets"),
    ("change", "Changes"),
    ("company", "Company"),
    ("file", "Files"),
    ("grant", "Permissions"),
    ("job", "Background jobs"),
    ("log", "Activity logs"),
    ("message", "Mail"),
    ("org", "Reorganisations"),
    ("outcome", "Outcomes"),
    ("question", "Questions"),
    ("run", "Runs"),
    ("schedule", "Schedules"),
    ("token", "Tokens"),
    ("user", "People"),
)


def past(action: str) -> str:
    """An action in the past tense."""
    words = _words(action)
    return words[1] if isinstance(words, tuple) else _in_the_past(words)


def infinitive(action: str) -> str:
    """An action in the infinitive, for one that was refused."""
    words = _words(action)
    return words[0] if isinstance(words, tuple) else words


def _words(action: str) -> str | tuple[str, str]:
    plain = action.replace("_", " ")
    unknown = (f"do {plain} on", f"did {plain} on")
    return _WORDS.get(action) or _VERBS.get(action.partition(".")[2], unknown)


def _in_the_past(words: str) -> str:
    """The past tense of a regular verb, with what follows it."""
    verb, blank, rest = words.partition(" ")
    if verb.endswith("e"):
        verb = verb[:-1]
    elif verb.endswith("y") and verb[-2] not in "aeiou":
        verb = f"{verb[:-1]}i"
    return f"{verb}ed{blank}{rest}"


def told(visit: Visit, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return events with all values that a page shows of them."""
    copies = [dict(event) for event in events]
    names = common_queries.names(
        visit, {mentioned for event in copies for mentioned in _mentioned(event)}
    )
    titles = visit.ask(
        name_lookup.titles,
        company=visit.company_id,
        resources={f"{kind}:{own}" for kind, own in map(_thing, copies) if own},
    )
    for event in copies:
        event["actor_kind"], _, event["actor_id"] = event["actor"].partition(":")
        event["actor_name"] = names[event["actor_id"]] if event["actor_id"] else "Remit"
        kind, own = _thing(event)
        plain, page = _called(kind, own), _PAGES.get(kind, "")
        name = titles.get(f"{kind}:{own}") or names.get(own, "")
        if kind == "kb_file" and name == event["actor_name"]:
            name = "its notes"
        event["thing"] = name or str(event["details"].get("name") or "") or plain
        event["thing_page"] = f"{page}{own}" if page and own else ""
        event["said"] = past(event["action"])
        event["more"] = ""
        if event["allowed"]:
            _tell(event, names)
        else:
            event["said"] = f"was not allowed to {infinitive(event['action'])}"
            event["more"] = str(event["details"].get("sentence") or "")
    return copies


def counted(told: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Merge repeated events into one with a count; events are equal if their `keys` are."""
    merged: list[dict[str, Any]] = []
    for event in told:
        if merged and all(merged[-1][key] == event[key] for key in keys):
            merged[-1]["times"] += 1
        else:
            merged.append({**event, "times": 1})
    return merged


def _tell(event: dict[str, Any], names: Mapping[str, str]) -> None:
    """Complete the sentence of an event from its details."""
    details: dict[str, Any] = event["details"]

    def name(key: str) -> str:
        """Return the name of an agent or a person in the details."""
        value = details.get(key)
        return names.get(value.rpartition(":")[2], "") if isinstance(value, str) else ""

    def of_agent(more: object = None) -> str:
        agent = name("agent_id") or name("agent")
        return ": ".join(filter(None, (f"of {agent}" if agent else "", str(more or ""))))

    noun, _, verb = event["action"].partition(".")
    match noun, verb:
        case "account", _:
            event["thing"] = str(details.get("title") or event["thing"])
            event["more"] = str(details.get("cause") or "")
        case "approval", _:
            event["thing"] = _asked_for(details.get("type"), name("agent") or "somebody")
        case "log", _:
            event["thing"] = f"“{details.get('summary') or ''}”"
        case "budget", _:
            event["more"] = _amounts(details)
        case (("binding" | "chat"), _):
            adapter = details.get("adapter_type")
            event["thing"] = f"the {adapter} channel" if adapter else event["thing"]
            event["more"] = of_agent(details.get("why") or details.get("who"))
        case "check", _:
            event["thing"] = f"the check {details.get('check')}"
        case "folder", _:
            event["thing"] = f"the folder {details.get('path') or 'of a repository'}"
            event["more"] = of_agent()
        case "job", _:
            event["more"] = of_agent(details.get("error") or details.get("why"))
        case "schedule", _:
            event["more"] = of_agent(details.get("why") or _times(details))
        case "token", "create":
            who = name("agent_id") or name("user_id") or "somebody"
            event["said"], event["thing"] = _token(details.get("kind"), who)
        case "file", "write":
            event["said"] = f"wrote version {details.get('version')} of"
        case "grant", "give" | "revoke":
            level = details.get("level") or "something"
            event["said"] = f"{event['said']} {level} on"
            way = "to" if verb == "give" else "from"
            event["more"] = f"{way} {name('holder')}" if name("holder") else ""
        case "outcome", "delegate":
            event["more"] = f"from {name('from')} to {name('to')}"
        case "outcome", "create":
            event["more"] = f"owned by {name('owner')}" if name("owner") else ""
        case ("message", "send") | ("question", "ask"):
            event["more"] = f"to {name('to') or details.get('to') or 'somebody'}"
        case "message", "ack":
            number = plural(len(details.get("ids") or ()), "message")
            event |= {"said": "marked", "thing": number, "thing_page": "", "more": "as read"}
        case "run", _:
            status = f", {details['status']}" if details.get("status") else ""
            event["more"] = f"of {name('agent_id') or 'an agent'}{status}"
        case "version", _:
            event["thing"] = f"version {details.get('now')}"
            event["more"] = f"after {details['was']}" if details.get("was") else ""
        case _:
            words = details.get("note") or details.get("reason") or details.get("summary")
            event["more"] = words if isinstance(words, str) else ""


def _asked_for(kind: object, who: str) -> str:
    return {
        "hire_agent": f"the hire of {who}",
        "config_change": f"a change of {who}",
        "capability_use": "the use of a permission",
        "budget": f"a budget for {who}",
    }.get(str(kind), "an approval")


def _token(kind: object, who: str) -> tuple[str, str]:
    kinds = {"session": ("signed in", ""), "login": ("requested a sign-in link", "")}
    return kinds.get(str(kind), ("created an access token for", who))


def _amounts(details: Mapping[str, Any]) -> str:
    """The budget that an event is about: an amount, or what it was and is."""
    kind = str(details.get("kind") or "")
    if "now" in details:
        was, now = (_amount(kind, details.get(key)) for key in ("was", "now"))
        return f"from {was} to {now or 'no limit'}" if was else now
    return _amount(kind, details.get("returned", details.get("amount"))) or kind


def _amount(kind: str, amount: int | None) -> str:
    if amount is None:
        return ""
    return micros(amount) if kind == Kind.MONEY.value else plural(amount, "token")


def _times(details: Mapping[str, Any]) -> str:
    """When a schedule is due, for events that say so."""
    if details.get("cron"):
        return cron_words.told(details["cron"], details.get("timezone") or "")
    return f"{details['next_at'][:16].replace('T', ' ')} UTC" if details.get("next_at") else ""


#: Kinds that have a name and no page.
_NAMED: Final = {
    "backup": "the backup",
    "folder": "the folder",
    "mcp_server": "the MCP server",
    "repo": "the repository",
    "secret": "the secret",
}


def _called(kind: str, own: str) -> str:
    if kind in _KINDS and (is_id(own) or kind not in _NAMED):
        return _KINDS[kind]
    return f"{_NAMED.get(kind, kind.replace('_', ' '))} {own}".rstrip()


def _thing(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return the subject of an event; of a grant, the resource that it is for."""
    resource = event["resource"]
    if event["action"].startswith("grant.") and event["details"].get("resource"):
        resource = event["details"]["resource"]
    kind, _, own = str(resource).partition(":")
    return kind, own


_PEOPLE: Final = ("holder", "owner", "from", "to", "agent", "agent_id", "user_id")


def _mentioned(event: Mapping[str, Any]) -> list[str]:
    kind, own = _thing(event)
    people = [event["details"].get(name) for name in _PEOPLE]
    return [
        event["actor"].partition(":")[2],
        *([own] if kind in ("agent", "user", "log") else []),
        *(party.rpartition(":")[2] for party in people if isinstance(party, str)),
    ]
