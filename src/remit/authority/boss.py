"""Authority of an agent with the level `boss`: over others, most of what a board member may do.

It reaches the agents below it or, where the board widened it, all agents but itself and those above
it. It never reaches another agent with that level, nor what only people decide: levels and
permissions of agents, people and their accounts, keys and secrets, access to the whole machine,
what a person stopped or paused, and purging. So those actions are not in the list.
"""

from remit.authority.facts import Facts
from remit.model.organisation.permission import Reach

#: Actions that a board member may do in a part of the company, and an agent with that level, too.
GOVERNED = frozenset(
    {
        "agent.appoint",
        "agent.control",
        "agent.terminate",
        "approval.cancel",
        "approval.comment",
        "approval.decide",
        "approval.read",
        "binding.read",
        "config.change",
        "config.read",
        "file.audit",
        "file.read",
        "file.see",
        "file.write",
        "grant.give",
        "grant.read",
        "grant.revoke",
        "key.read",
        "message.read",
        "message.send",
        "org.change",
        "outcome.change",
        "outcome.create",
        "outcome.delegate",
        "outcome.finish",
        "outcome.read",
        "outcome.reclaim",
        "question.answer",
        "schedule.change",
        "thread.cancel",
    }
)
_ABOUT_REQUESTS = frozenset({"approval.decide", "approval.cancel"})


def governs(action: str, agent: str, facts: Facts) -> bool:
    """Return whether the level gives this agent authority over the action."""
    place, reach = facts.place, facts.reach
    if action not in GOVERNED or not place:
        return False
    if facts.over_boss or facts.for_people or facts.by_person:
        return False
    if action in _ABOUT_REQUESTS and facts.requester is None:
        return False  # a person asked for it
    if place[0] in facts.above or place[0] == agent:
        return False
    return reach is Reach.COMPANY or (reach is Reach.BELOW and agent in place[1:])
