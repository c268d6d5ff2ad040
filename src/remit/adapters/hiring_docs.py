"""Documentation for agents that configure and hire others, made from the installed adapters."""

from remit.adapters import registry

INDEX = "/llms/agent-configuration.txt"


def address_of(type_: str) -> str:
    return f"/llms/agent-configuration/{type_}.txt"


def adapter_text(type_: str) -> str:
    """Return the documentation of one adapter's settings; raises NotFound without the adapter."""
    return registry.get(type_).agent_configuration_doc()


def index_text() -> str:
    """Return the list of adapters with the addresses of their documentation, and a hiring guide."""
    lines = ["# Configuring and hiring agents", "", "## Installed adapters", ""]
    for adapter in registry.all():
        lines += [f"- {adapter.type}: {adapter.summary}", f"  GET {address_of(adapter.type)}"]
    if problems := registry.problems():
        lines += ["", "Installed, but not usable: " + ", ".join(sorted(problems)) + "."]
    return "\n".join(lines) + "\n" + _HIRING


_HIRING = """
## How to hire

1. Read the adapter's documentation: GET /llms/agent-configuration/{adapterType}.txt,
   or the tool adapter_docs.
2. Read how others are configured, yourself and similar roles first:
   GET /api/companies/{companyId}/agent-configurations, GET /api/agents/{id}/configuration,
   or the tool agent_configurations. Secrets are shown as ***REDACTED***. Never copy the marker
   into a hire: name a secret by its secretRef, or let the board set it.
3. Ask for the hire: POST /api/companies/{companyId}/agent-hires, or the tool hire_agent, with
   {"name", "role", "title", "reportsTo", "capabilities", "adapterType", "adapterConfig", "prompt"}.
   role is one of ceo cto cmo cfo security engineer designer pm qa devops researcher general.
   The answer is {"agent", "approval"}. When approval is null the agent can work at once.
   Otherwise the agent is pending_approval: it is in the tree, and can neither run nor own work.
4. Wait for the decision: it comes as mail. GET /api/approvals/{id} or the tool approval_view
   shows status and comments meanwhile. Do not ask for the same hire again.
5. revision_requested: read decisionNote and the comments (GET /api/approvals/{id}/comments),
   answer with POST /api/approvals/{id}/comments or the tool approval_comment, and submit what is
   to be different: POST /api/approvals/{id}/resubmit {"payload"}, or the tool approval_resubmit.
   The rest stays. Then it is pending again; repeat from 4.
6. approved: the agent is idle and can be given work. rejected or cancelled: the agent is
   terminated; ask anew only if something has changed.
"""
