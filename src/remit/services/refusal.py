"""Next steps after a refusal."""

from remit.authority import Action
from remit.model.organisation.decision import Decision

_STEPS = {
    "needs_approval": "Ask the board to allow it, or to approve this use.",
    "denied_by_grant": "Ask the board; it denied this on purpose.",
    "observer": "Ask a board member to do it, or to give you the board role.",
    "outside_scope": "Ask a board member over the whole company.",
    "not_operator": "Ask the operator of this instance.",
    "board_only": "Ask your boss or the board to do it.",
    "agent_inactive": "Stop calling; the board decides about this agent.",
    "not_your_report": "Ask the agent's own boss to grant it.",
    "yours_to_judge": "Complete it with outcome_complete when it is accomplished.",
    "not_delegated": "Work on it; there is nothing to take back.",
    "delegated_away": "Write to its owner (mail_send), or reclaim what you delegated.",
    "skip_level": "Write to your own report (mail_send), or reclaim what you delegated to it.",
    "read_only": "Write to your boss (mail_send) what should change about it.",
    "not_below_you": "Ask its own boss, or the board.",
    "paused_by_person": "Ask the board to resume it.",
    "stopped_by_person": "Ask the board to let it go on.",
    "stopped_from_above": "Ask your boss or the board to let it go on.",
    "may_not_hire": "Ask your boss (ask) to hire, or for the permission to.",
    "no_configurations": "Ask the board, or somebody who may hire.",
    "not_ceo": "Ask the board or the CEO.",
    "own_permissions": "Ask the board.",
    "board_decides": "Wait; the board sees it among what awaits it.",
    "people_decide": "Wait; the board sees it among what awaits it.",
    "own_request": "Wait for somebody above you, or for the board.",
    "agents_only": "Let an agent do it: write to one, or grant it what it needs.",
    "not_in_reach": "Write to your boss (mail_send), who can pass it on, or ask it for a message "
    "capability.",
    "not_bound": "Ask the board to bind you, or write to somebody who can pass it on.",
    "kept_by_remit": "Deal with the mail and acknowledge it (mail_ack); the outcome closes by "
    "itself.",
    "altered": "Reject it, and have it asked for anew; `remit event verify` checks the record.",
    "not_held": "Ask your own boss for it first (capability_request), then pass it on.",
    "outside_limits": "Leave it out, or ask your boss for a capability that names it.",
    "executed_by_forge": "Leave it out, or ask your boss (ask) for a capability that names it.",
    "configures_programs": "Leave it out, or ask your boss (ask) for a capability that names it.",
    "not_author": "Somebody who may merge it can decline it: `remit change decline`.",
    "own_change": "Somebody else with merge on the repository, or the board, judges it.",
    "outlives_source": "Choose an earlier expiry, or none to inherit it.",
}
#: No agent judges, changes or delegates its own mandate.
_OWN_MANDATE = {
    Action.OUTCOME_FINISH: "Hand it in with outcome_submit; if it cannot be reached, tell your "
    "boss why (mail_send).",
    Action.OUTCOME_CHANGE: "Write to your boss (mail_send) what should change about it.",
    Action.OUTCOME_DELEGATE: "Create a part of it (outcome_create) and delegate that.",
}
_LEVELS = {
    Action.FILE_WRITE: "write",
    Action.MCP_SERVER_READ: "use",
    Action.MCP_SERVER_CALL: "use",
    Action.REPO_READ: "use",
    Action.REPO_SYNC: "use",
    Action.CHANGE_PROPOSE: "propose",
    Action.CHANGE_COMMENT: "propose",
    Action.CHANGE_MERGE: "merge",
}


def next_step(decision: Decision, action: Action, on: str) -> str:
    if decision.reason == "no_capability":
        level = _LEVELS.get(action, "read")
        return f"Ask your boss for it: capability_request with resource {on} and level {level}."
    if decision.reason == "own_mandate":
        return _OWN_MANDATE[action]
    return _STEPS.get(decision.reason, "Ask your boss or the board.")
