"""Events as sentences with links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from remit.entrypoints.web.site import Visit
from remit.entrypoints.web.text import common_queries
from remit.services.screens import name_lookup

#: What somebody did, and what somebody was not allowed to do.
_WORDS: Final = {
    "account.check": ("tested", "test"),
    "account.close": ("closed", "close"),
    "account.open": ("reopened", "open"),
    "account.retry": ("retried", "retry"),
    "agent.new_session": ("started a new conversation of", "start a new conversation of"),
    "backup.create": ("made", "make"),
    "backup.download": ("downloaded", "download"),
    "backup.remove": ("deleted", "delete"),
    "board.token": ("replaced the board's token of", "replace the board's token of"),
    "repo.checks": ("set the checks of", "set the checks of"),
    "change.check": ("started checks again on", "start checks again on"),
    "change.checked": ("checked", "check"),
    "change.close_request": ("closed the request of", "close the request of"),
    "change.closed": ("closed", "close"),
    "change.comment": ("commented on", "comment on"),
    "change.conflicts": ("checked for conflicts in", "check for conflicts in"),
    "change.intend": ("announced", "announce"),
    "change.merge": ("merged", "merge"),
    "change.merged": ("found merged", "find merged"),
    "change.observe": ("synchronised", "synchronise"),
    "change.outside": ("received outside comments on", "receive outside comments on"),
    "change.prepare": ("prepared", "prepare"),
    "change.propose": ("proposed", "propose"),
    "change.publish": ("published", "publish"),
    "change.push": ("began to push", "push"),
    "change.read": ("viewed", "view"),
    "change.request": ("updated the request for", "update the request for"),
    "change.tell": ("posted comments to the forge about", "post comments to the forge about"),
    "chat.flood": ("held back messages of", "hold back messages of"),
    "chat.refused": ("refused", "refuse"),
    "chat.unheard": ("ignored a stranger in", "ignore a stranger in"),
    "chat.unlinked": (
        "got a message from an unknown account in",
        "take a message from an unknown account in",
    ),
    "chat.use": ("used", "use"),
    "chat.handled": ("handled a message in", "handle a message in"),
    "chat.unhandled": ("could not handle a message in", "handle a message in"),
    "check.end": ("ended", "end"),
    "check.fail": ("could not run", "run"),
    "check.put_back": ("requeued", "requeue"),
    "errand.done": ("finished", "finish"),
    "errand.fail": ("could not finish", "finish"),
    "notice.deliver": ("sent", "send"),
    "notice.fail": ("could not send", "send"),
    "post.deliver": ("posted", "post"),
    "post.undelivered": ("could not post", "post"),
    "company.restore_root": ("restored the root agent of", "restore the root agent of"),
    "folder.add": ("added", "add"),
    "folder.change": ("changed", "change"),
    "folder.remove": ("removed", "remove"),
    "instance.operate": ("operated", "operate"),
    "issue.take": ("took on an issue of", "take on an issue of"),
    "issue.tell": ("answered an issue of", "answer an issue of"),
    "linked_account.code": ("created a code for", "create a code for"),
    "linked_account.link": ("linked", "link"),
    "linked_account.revoke": ("unlinked", "unlink"),
    "wait.remind": ("sent a reminder about", "send a reminder about"),
    "wish.cancel": ("withdrew", "withdraw"),
    "agent.abort": ("cancelled the run of", "cancel a run of"),
    "agent.appoint": ("appointed", "appoint"),
    "agent.check": ("tested", "test"),
    "agent.configure": ("changed the configuration of", "configure"),
    "agent.control": ("controlled", "control"),
    "agent.create": ("created", "create"),
    "agent.delete": ("deleted", "delete"),
    "agent.hire": ("hired", "hire"),
    "agent.import": ("imported", "import"),
    "agent.pause": ("paused", "pause"),
    "agent.permit": ("changed the permissions of", "change the permissions of"),
    "agent.purge": ("erased the personal data of", "erase the personal data of"),
    "agent.read": ("viewed", "view"),
    "agent.reinstate": ("reinstated", "reinstate"),
    "agent.restart": ("restarted", "restart"),
    "agent.resume": ("resumed", "resume"),
    "agent.start": ("started", "start"),
    "agent.stop": ("stopped", "stop"),
    "agent.terminate": ("terminated", "terminate"),
    "agent.update": ("updated", "update"),
    "agent.wake": ("woke", "wake"),
    "approval.approve": ("approved", "approve"),
    "approval.cancel": ("withdrew", "withdraw"),
    "approval.collect": ("received the answer to", "receive the answer to"),
    "approval.comment": ("commented on", "comment on"),
    "approval.decide": ("decided", "decide"),
    "approval.expire": ("let expire", "let expire"),
    "approval.read": ("viewed", "view"),
    "approval.refer": ("referred", "refer"),
    "approval.reject": ("rejected", "reject"),
    "approval.remind": ("sent a reminder about", "send a reminder about"),
    "approval.request": ("requested", "request"),
    "approval.resubmit": ("resubmitted", "resubmit"),
    "approval.revise": ("returned", "return"),
    "approval.use": ("used", "use"),
    "binding.change": ("changed the settings of", "change"),
    "binding.create": ("connected", "connect"),
    "binding.delete": ("disconnected", "disconnect"),
    "binding.read": ("viewed", "view"),
    "binding.test": ("tested", "test"),
    "binding.restore": ("reconnected", "reconnect"),
    "budget.raise": ("raised the budget of", "raise the budget of"),
    "budget.reserve": ("reserved a budget for", "reserve a budget for"),
    "budget.return": ("took back unspent budget from", "take back budget from"),
    "budget.stop": ("stopped for lack of budget:", "stop for lack of budget"),
    "capability.refuse": ("refused a permission to", "refuse a permission to"),
    "company.apply": ("applied a description to", "apply a description to"),
    "company.change": ("changed the settings of", "change"),
    "company.create": ("founded", "found"),
    "company.export": ("exported", "export"),
    "company.import": ("imported", "import"),
    "company.read": ("viewed", "view"),
    "company.signing_key": ("made a signing key for", "make a signing key for"),
    "config.change": ("changed the configuration of", "change the configuration of"),
    "config.propose": ("proposed a configuration for", "propose a configuration for"),
    "config.read": ("viewed the configuration of", "view the configuration of"),
    "event.read": ("viewed", "view"),
    "event.verify": ("verified", "verify"),
    "file.audit": ("viewed the access log of", "view the access log of"),
    "file.create": ("created the file", "create a file"),
    "file.describe": ("renamed", "rename"),
    "file.read": ("read", "read"),
    "file.see": ("viewed", "view"),
    "file.write": ("wrote", "write"),
    "grant.give": ("granted", "grant"),
    "grant.import": ("imported", "import"),
    "grant.read": ("viewed", "view"),
    "grant.revoke": ("revoked", "revoke"),
    "halt.go": ("resumed", "resume"),
    "halt.stop": ("stopped", "stop"),
    "job.cancel": ("cancelled", "cancel"),
    "job.end": ("finished", "finish"),
    "job.lost": ("lost", "lose"),
    "job.put_back": ("requeued", "requeue"),
    "job.restore": ("restored", "restore"),
    "job.start": ("started", "start"),
    "job.unanswered": ("could not answer for", "answer for"),
    "job.wait": ("postponed", "postpone"),
    "key.change": ("changed a key of", "change a key of"),
    "key.read": ("viewed the keys of", "view the keys of"),
    "level.change": ("changed the permission level of", "change the permission level of"),
    "limit.reach": ("reached a limit of", "reach a limit of"),
    "log.submit": ("logged", "write in the log"),
    "log.write": ("logged", "write in the log"),
    "mail.due": ("delivered scheduled mail", "deliver"),
    "mcp_server.add": ("connected", "connect"),
    "mcp_server.call": ("called", "call"),
    "mcp_server.change": ("changed", "change"),
    "mcp_server.read": ("viewed", "view"),
    "mcp_server.remove": ("removed", "remove"),
    "mcp_server.replace": ("changed", "change"),
    "mcp_server.test": ("tested", "test"),
    "message.ack": ("dealt with the mail of", "deal with the mail of"),
    "message.cancel": ("withdrew", "withdraw"),
    "message.deliver": ("delivered", "deliver"),
    "message.discard": ("dismissed", "dismiss"),
    "message.put_back": ("requeued", "requeue"),
    "message.read": ("read", "read"),
    "message.revive": ("requeued", "requeue"),
    "message.send": ("sent", "send"),
    "message.undelivered": ("could not deliver", "deliver"),
    "notice.set": ("changed the notifications of", "change the notifications of"),
    "notice.try": ("tested the notifications of", "test the notifications of"),
    "org.change": ("reorganised", "reorganise"),
    "org.undo": ("undid a reorganisation", "undo a reorganisation"),
    "outcome.change": ("changed", "change"),
    "outcome.close": ("closed", "close"),
    "outcome.complete": ("completed", "complete"),
    "outcome.create": ("created", "create a part of"),
    "outcome.delegate": ("delegated", "delegate"),
    "outcome.finish": ("finished", "complete or close"),
    "outcome.read": ("viewed", "read"),
    "outcome.reclaim": ("took back", "take back"),
    "outcome.reopen": ("reopened", "reopen"),
    "outcome.return": ("returned", "return"),
    "outcome.submit": ("submitted", "submit"),
    "policy.change": ("changed the permission levels of", "change the permission levels of"),
    "policy.read": ("viewed the permission levels of", "view the permission levels of"),
    "question.answer": ("answered", "answer"),
    "question.ask": ("asked", "ask"),
    "question.cancel": ("withdrew", "withdraw"),
    "question.pass_on": ("passed on", "pass on"),
    "repo.add": ("added", "add"),
    "repo.change": ("changed", "change"),
    "repo.clone": ("cloned", "clone"),
    "repo.read": ("viewed", "view"),
    "repo.remove": ("removed", "remove"),
    "repo.sync": ("synchronised", "synchronise"),
    "repo.use": ("used", "use"),
    "run.change": ("changed", "change"),
    "run.end": ("ended", "end"),
    "run.report": ("reported on", "report on"),
    "run.start": ("started", "start"),
    "run.undelivered": ("could not deliver to", "deliver to"),
    "schedule.add": ("created", "create"),
    "schedule.cancel": ("cancelled", "cancel"),
    "schedule.change": ("changed", "change"),
    "schedule.failed": ("could not carry out", "carry out"),
    "secret.change": ("changed", "change"),
    "secret.read": ("viewed", "view"),
    "secret.remove": ("removed", "remove"),
    "secret.set": ("set", "set"),
    "session.end": ("ended", "end"),
    "thread.cancel": ("withdrew", "withdraw"),
    "token.create": ("created", "create"),
    "token.revoke": ("revoked", "revoke"),
    "user.add": ("added", "add"),
    "user.change": ("changed", "change"),
    "user.read": ("viewed", "view"),
    "user.remove": ("removed", "remove"),
}
#: What a resource is called that has no name of its own, and where its page is.
_KINDS: Final = {
    "agent": ("an agent", "/agents/"),
    "outcome": ("an outcome", "/outcomes/"),
    "kb_file": ("a file", "/files/"),
    "approval": ("an approval", "/approvals/"),
    "message": ("a message", "/inbox/"),
    "run": ("a run", "/runs/"),
    "event": ("an event", "/events/"),
    "company": ("the company", "/companies/"),
    "change": ("a change", "/changes/"),
    "check": ("a check", ""),
    "errand": ("a task at the remote", ""),
    "notice": ("a notice", ""),
    "post": ("a post", ""),
    "account": ("an account", ""),
    "grant": ("a permission", ""),
    "job": ("a background job", ""),
    "question": ("a question", ""),
    "schedule": ("a schedule", ""),
    "session": ("a session", ""),
    "token": ("an access token", ""),
    "user": ("somebody", ""),
    "log": ("", ""),
    "org": ("", ""),
    "events": ("the record", ""),
}
#: Kinds of events that there is something to look for in; others can be typed into the address.
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
    return _WORDS[action][0] if action in _WORDS else f"did {action.replace('_', ' ')} on"


def infinitive(action: str) -> str:
    """An action in the infinitive, for one that was refused."""
    return _WORDS[action][1] if action in _WORDS else f"do {action.replace('_', ' ')} on"


def told(visit: Visit, events: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Events with all that a page says about them."""
    found = [dict(event) for event in events]
    names = common_queries.names(visit, {one for event in found for one in _mentioned(event)})
    titles = visit.ask(
        name_lookup.titles,
        company=visit.company_id,
        resources={f"{kind}:{own}" for kind, own in map(_thing, found) if own},
    )
    for event in found:
        event["actor_kind"], _, event["actor_id"] = event["actor"].partition(":")
        event["actor_name"] = names[event["actor_id"]] if event["actor_id"] else "Remit"
        kind, own = _thing(event)
        plain, page = _KINDS.get(kind, (_called(kind, own), ""))
        name = titles.get(f"{kind}:{own}") or names.get(own, "")
        if kind == "kb_file" and name == event["actor_name"]:
            name = "its notes"
        event["thing"] = name or str(event["details"].get("name") or "") or plain
        event["thing_page"] = f"{page}{own}" if page and own else ""
        event["said"] = past(event["action"])
        event["more"] = ""
        if event["allowed"]:
            _Teller(event, names).tell()
        else:
            event["said"] = f"was not allowed to {infinitive(event['action'])}"
            event["more"] = str(event["details"].get("sentence") or "")
    return found


def counted(told: Iterable[dict[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """The same over and over again is said once, with how often; `keys` say what is the same."""
    found: list[dict[str, Any]] = []
    for event in told:
        if found and all(found[-1][key] == event[key] for key in keys):
            found[-1]["times"] += 1
        else:
            found.append({**event, "times": 1})
    return found


class _Teller:
    """Makes a sentence say what happened, with the little that the details have to add."""

    def __init__(self, event: dict[str, Any], names: Mapping[str, str]) -> None:
        self.event = event
        self.details: dict[str, Any] = event["details"]
        self.names = names

    def name(self, key: str) -> str:
        """Somebody whom the details mention."""
        value = self.details.get(key)
        return self.names.get(value.rpartition(":")[2], "") if isinstance(value, str) else ""

    def tell(self) -> None:
        event, details = self.event, self.details
        noun, _, verb = event["action"].partition(".")
        match noun, verb:
            case "approval", _:
                event["thing"] = self._asked_for()
            case "log", _:
                event["thing"] = f"“{details.get('summary') or ''}”"
            case "budget", _:
                event["more"] = str(details.get("kind") or "")
            case "token", "create":
                event["said"], event["thing"] = self._token()
            case "file", "write":
                event["said"] = f"wrote version {details.get('version')} of"
            case "grant", "give" | "revoke":
                level = details.get("level") or "something"
                event["said"] = f"{event['said']} {level} on"
                way = "to" if verb == "give" else "from"
                event["more"] = f"{way} {self.name('holder')}" if self.name("holder") else ""
            case "outcome", "delegate":
                event["more"] = f"from {self.name('from')} to {self.name('to')}"
            case "outcome", "create":
                event["more"] = f"owned by {self.name('owner')}" if self.name("owner") else ""
            case ("message", "send") | ("question", "ask"):
                event["more"] = f"to {self.name('to') or details.get('to') or 'somebody'}"
            case "run", _:
                status = f", {details['status']}" if details.get("status") else ""
                event["more"] = f"of {self.name('agent_id') or 'an agent'}{status}"
            case _:
                words = details.get("note") or details.get("reason") or details.get("summary")
                event["more"] = words if isinstance(words, str) else ""

    def _asked_for(self) -> str:
        who = self.name("agent") or "somebody"
        return {
            "hire_agent": f"the hire of {who}",
            "config_change": f"a change of {who}",
            "capability_use": "the use of a permission",
            "budget": f"a budget for {who}",
        }.get(str(self.details.get("type")), "an approval")

    def _token(self) -> tuple[str, str]:
        kinds = {"session": ("signed in", ""), "login": ("requested a sign-in link", "")}
        if self.details.get("kind") in kinds:
            return kinds[self.details["kind"]]
        return "created an access token for", self.name("agent_id") or self.name(
            "user_id"
        ) or "somebody"


#: What has a name instead of a page.
_NAMED: Final = {"mcp_server": "the MCP server", "repo": "the repository", "secret": "the secret"}


def _called(kind: str, own: str) -> str:
    return f"{_NAMED.get(kind, kind.replace('_', ' '))} {own}".rstrip()


def _thing(event: Mapping[str, Any]) -> tuple[str, str]:
    """Subject of an event; a capability is about what it is for."""
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
        *(one.rpartition(":")[2] for one in people if isinstance(one, str)),
    ]
