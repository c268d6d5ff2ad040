"""/openapi.json: programs are generated from it, and requests that try everything it says."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import jsonschema_rs
import pytest
from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request

from remit.entrypoints import bodies
from remit.entrypoints.declared import declared
from remit.entrypoints.http import declared_routes
from remit.entrypoints.http.routes import channels
from remit.entrypoints.http.server.protocol import (
    HEAD_SECONDS,
    LARGEST_HEAD,
    LINGER_BYTES,
    LINGER_SECONDS,
    LONGEST_ADDRESS,
    MOST_CONNECTIONS,
    SILENT_SECONDS,
)
from remit.entrypoints.http.wire import field_types, response_types
from remit.entrypoints.http.wire.fields import Body
from remit.entrypoints.http.wire.json_document import DEEPEST
from remit.entrypoints.mcp import endpoint
from remit.entrypoints.web.forms import LARGEST_FORM, MOST_FIELDS
from remit.errors import BadInput
from remit.model.organisation.agent_spec import AgentRole
from remit.model.organisation.halt import LONGEST_NOTE as LONGEST_HALT
from remit.model.text import LONGEST_NAME, LONGEST_REASON
from remit.model.work.file import LONGEST_DESCRIPTION
from remit.services.archive.archive import LARGEST_MEBIBYTES
from remit.services.command import LONGEST_KEY
from remit.services.knowledge.file_contents import LARGEST_FILE
from remit.services.surfaces import AsRoute
from remit.services.verbs import all_verbs
from tests import description
from tests.attack_stage import Stage, staged
from tests.test_attacks_ids import operations

#: Every second request has ids that there are, and three of four have a key that nobody used. Of
#: several callers each has its turn; one alone is said on the command line. The generator learns
#: ids from answers: what would end those who call is kept from it. It knows no tar, so that is sent
#: as anything binary.
HOOKS = """
import itertools
import json
import os
import re
import uuid

import schemathesis

KNOWN = json.loads(os.environ["REMIT_KNOWN"])
turns = itertools.cycle(KNOWN["tokens"])
halves = itertools.cycle([True, False])
keys = itertools.cycle([True, True, True, False])

schemathesis.serializer.alias("application/x-tar", "application/octet-stream")


@schemathesis.hook
def before_call(context, case, kwargs):
    if len(KNOWN["tokens"]) > 1:
        token = next(turns)
        case.headers.pop("Authorization", None)
        if token is not None:
            case.headers["Authorization"] = f"Bearer {token}"
    where = f"{case.method} {case.path}"
    usual, known = next(halves), KNOWN["ids"].get(where, {})
    if case.meta is not None and case.meta.phase.name.value == "stateful":
        # What is not the company's comes from an earlier answer.
        usual, known = True, {name: one for name, one in known.items() if name == "companyId"}
    if usual:
        case.path_parameters.update(known)
    if "Idempotency-Key" in case.headers and next(keys):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if re.fullmatch(KNOWN["ends"], where):
        for name, value in case.path_parameters.items():
            if value in KNOWN["kept"]:
                case.path_parameters[name] = str(uuid.uuid4())
"""
#: Types that describe and check a text.
TYPES = {
    name: kind
    for name, kind in vars(field_types).items()
    if any(isinstance(one, field_types.Described) for one in getattr(kind, "__metadata__", ()))
    and kind.__origin__ is str
}
#: With ids that there are, these would leave nothing to try, or run for long.
ENDS = re.compile(
    r"DELETE .*|POST .*/(terminate|purge|stop|cancel|abort|close|test|sync)|GET .*/runs/.*/log"
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def document(stage: Stage) -> Mapping[str, Any]:
    found: dict[str, Any] = stage.operator.must("GET", "/openapi.json")
    return found


def test_operations_and_schemas_have_names_of_their_own(document: Mapping[str, Any]) -> None:
    names = [one["operationId"] for found in document["paths"].values() for one in found.values()]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)
    # Two of one name would be told apart by the modules they come from.
    assert all(re.fullmatch(r"[A-Z][A-Za-z]*", name) for name in document["components"]["schemas"])


def test_every_answer_has_a_schema(document: Mapping[str, Any]) -> None:
    named = set()
    for found in document["paths"].values():
        for operation in found.values():
            name, responses = operation["operationId"], operation["responses"]
            assert "default" not in responses
            errors = {"5XX"} if name == "health" else {"401", "404", "422", "5XX"}
            assert errors <= responses.keys()
            for status, response in responses.items():
                content = response.get("content", {})
                assert content or "$ref" in response or status == "304", (name, status)
                if status.startswith("2") and "application/json" in content:
                    named.add(name)
                    schema = content["application/json"]["schema"]
                    inner = schema.get("items", schema)
                    assert "$ref" in inner or all("$ref" in one for one in inner["anyOf"]), name
    # What a verb declares is described by the type of what it returns.
    declared_ones = {surface.operation for _, surface in declared(AsRoute)}
    assert named - declared_ones == response_types.ANSWERS.keys()


#: Keys of answers whose contents Remit does not define, with who does.
FREE = {
    "adapterConfig": "the adapter or channel declares its settings",
    "runtimeConfig": "who hires keeps notes there",
    "metadata": "who hires keeps notes there",
    "configuration": "fields of an agent in the version of that day",
    "was": "a setting of any type",
    "now": "a setting of any type",
    "details": "each kind of event, and each adapter, has its own",
    "payload": "each kind of approval has its own",
    "result": "the answer of the call that was approved",
    "steps": "each kind of step has its own",
}


def test_answers_are_described_down_to_the_last_key(document: Mapping[str, Any]) -> None:
    loose = {
        (name, key)
        for name, schema in document["components"]["schemas"].items()
        for key, inner in schema.get("properties", {}).items()
        if _is_loose(inner)
    }
    asked = {
        found["$ref"].rpartition("/")[2]
        for operations in document["paths"].values()
        for operation in operations.values()
        for found in _references(operation["responses"])
    }
    seen: set[str] = set()
    while asked - seen:
        name = (asked - seen).pop()
        seen.add(name)
        schema = document["components"]["schemas"].get(name, {})
        asked |= {found["$ref"].rpartition("/")[2] for found in _references(schema)}
    assert {key for name, key in loose if name in seen} == FREE.keys()


def _is_loose(schema: Mapping[str, Any]) -> bool:
    """Whether a schema allows any value, or an object of any values, somewhere."""
    if not schema.keys() - {"title", "description", "default"}:
        return True
    if schema.get("type") == "object" and not schema.get("properties"):
        values = schema.get("additionalProperties")
        return not isinstance(values, Mapping) or _is_loose(values)
    if schema.get("type") == "array" and _is_loose(schema.get("items", {})):
        return True
    return any(_is_loose(one) for one in schema.get("anyOf", ()))


def _references(schema: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(schema, Mapping) and "$ref" in schema:
        yield schema
    inner = schema.values() if isinstance(schema, Mapping) else schema
    if isinstance(inner, Iterable) and not isinstance(inner, str):
        for one in inner:
            yield from _references(one)


def test_every_verb_says_what_it_answers() -> None:
    untyped = {
        name
        for name, verb in all_verbs().items()
        if _is_untyped(get_type_hints(inspect.unwrap(verb.body)).get("return", Any))
    }
    assert untyped == set()


def _is_untyped(kind: Any) -> bool:
    inner = get_args(kind)
    if get_origin(kind) in (dict, Mapping):
        return inner[1] in (Any, object)
    return kind in (Any, object, dict) or any(map(_is_untyped, inner))


def test_fields_are_described_as_they_are_checked(
    stage: Stage, document: Mapping[str, Any]
) -> None:
    hire = document["components"]["schemas"]["HireBody"]["properties"]
    assert hire["role"]["anyOf"][0]["enum"] == [role.value for role in AgentRole]
    assert hire["name"]["maxLength"] == LONGEST_NAME
    assert re.search(hire["name"]["pattern"], "web-designer")
    board, path = stage.ours.board, f"/api/companies/{stage.ours.company}/agent-hires"
    for name in ("a b", "-a", "a" * (LONGEST_NAME + 1)):
        ours = hire["name"]
        described = bool(re.search(ours["pattern"], name)) and len(name) <= ours["maxLength"]
        assert not described
        assert board("POST", path, {"name": name}).status == 422
    shape = document["components"]["schemas"]["Agent"]
    assert set(shape["required"]) < set(shape["properties"])
    assert shape["properties"]["createdAt"] == {"type": "string", "format": "date-time"}


def test_an_answer_that_is_not_as_described_is_noticed(document: Mapping[str, Any]) -> None:
    """The control: what every client of the tests looks at would be seen."""
    described = description.Described(dict(document))
    agent = {"id": "a", "companyId": "c", "name": "n", "role": "general", "status": "idle"}
    described.check("GET", "/api/agents/a", 200, json.dumps(agent).encode())
    for wrong in ({**agent, "status": "asleep"}, {**agent, "id": 1}, {"id": "a"}, [agent]):
        with pytest.raises(ValueError, match="validating"):
            described.check("GET", "/api/agents/a", 200, json.dumps(wrong).encode())
    with pytest.raises(AssertionError, match="does not say that it answers 418"):
        described.check("GET", "/api/agents/a", 418, b"{}")


def test_a_list_that_is_read_whole_is_cut_by_what_its_rows_have() -> None:
    def pages(route: Any) -> list[str]:
        rows = [{route.surface.page: f"0198c0de-0000-7000-8000-00000000000{n}"} for n in range(3)]

        async def call(*_: Any, **__: Any) -> Any:
            return rows

        route._app = SimpleNamespace(library=SimpleNamespace(call=call))
        about: Any = {"type": "http", "method": "GET", "path": "/", "query_string": b""}
        about |= {"headers": [(b"authorization", f"Bearer {'x' * 9}".encode())]}
        found: list[str] = []
        cursor: str | None = None
        while cursor != "":
            asked = {"limit": 2, "cursor": cursor}
            page = asyncio.run(route._page(Request(about), asked))
            found += [value for row in json.loads(page.body) for value in row.values()]
            cursor = page.headers.get("link", "").partition("cursor=")[2].partition(">")[0]
        assert found == [row[route.surface.page] for row in rows], route.path
        return found

    nothing: Any = SimpleNamespace()
    whole = [one for one in declared_routes.routes(nothing) if one.surface.page]
    whole = [one for one in whole if "limit" not in one.verb.fields]
    assert {one.surface.page for one in whole} > {"id", "name"}
    assert all(map(pages, whole))


def test_the_limits_are_those_that_are_documented() -> None:
    said = (Path(__file__).parent.parent / "docs" / "api.md").read_text()
    for row in (
        f"| request line | {LONGEST_ADDRESS >> 10} KiB | 414 |",
        f"| request line and headers | {LARGEST_HEAD >> 10} KiB, within {HEAD_SECONDS:.0f} seconds",
        f"| JSON document | {bodies.LARGEST_DOCUMENT >> 20} MiB, {bodies.MOST_VALUES:,} values, ",
        f"values, {DEEPEST} levels |",
        f"| MCP message | {endpoint.LARGEST_BODY >> 20} MiB, {endpoint.MOST_VALUES:,} values |",
        f"| form of a page | {LARGEST_FORM >> 20} MiB, {MOST_FIELDS} fields |",
        f"| file, as it is | {LARGEST_FILE >> 20} MiB |",
        f"| message from a channel | {channels.LARGEST_BODY >> 10} KiB as JSON |",
        f"| import | {LARGEST_MEBIBYTES >> 10} GiB, or",
        f"| between pieces of a body | {SILENT_SECONDS:.0f} seconds |",
        f"| a whole document | {bodies.ARRIVAL_SECONDS:.0f} seconds |",
        f"| documents over {bodies.SMALL >> 10} KiB that are being answered | ",
        f"| {bodies.MOST_IN_FLIGHT >> 20} MiB in all, {bodies.MOST_OF_ONE >> 20} MiB of one",
        f"| waits up to {bodies.ROOM_SECONDS:.0f} seconds, then 503 |",
        f"| connections | half of what the process may have open, {MOST_CONNECTIONS:,} at most |",
        f"at most {LINGER_BYTES >> 20} MiB and {LINGER_SECONDS:.0f} seconds",
        f"1 to {LONGEST_KEY} printable characters",
    ):
        assert row in said, row


def known_ids(stage: Stage, document: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """By method and path, ids of things that there are."""
    found = {}
    for operation in operations(dict(document)):
        names = re.findall(r"{(\w+)}", operation.template)
        pattern = re.sub(r"{\w+}", "([^/]+)", operation.template)
        values = re.fullmatch(pattern, operation.path(stage.ours))
        where = f"{operation.method} {operation.template}"
        if names and values is not None and not ENDS.fullmatch(where):
            found[where] = dict(zip(names, values.groups(), strict=True))
    return found


def known_to(stage: Stage, document: Mapping[str, Any], tokens: list[str | None]) -> str:
    """For the hooks: who calls, what there is, and what has to stay."""
    ids = known_ids(stage, document)
    assert len(ids) > 60
    me, mine = (stage.operator.must("GET", f"/api/me{place}") for place in ("", "/tokens"))
    kept = {*stage.ours.ids.values(), *stage.ours.names.values(), me["id"], me["name"]}
    kept |= {one["id"] for one in mine}
    told = {"tokens": tokens, "ids": ids, "kept": sorted(kept), "ends": ENDS.pattern}
    return json.dumps(told)


#: What is looked at in each answer: all that the generator knows, but for these.
LEFT_OUT = (
    # A schema does not say that a cron has a next time, or that somebody has that name already.
    "positive_data_acceptance",
)


def send_generated(
    stage: Stage,
    document: Mapping[str, Any],
    folder: Path,
    callers: Sequence[str | None],
    *options: str,
) -> None:
    """Send what a generator makes of the description, and fail for whatever it finds."""
    hooks = folder / "hooks.py"
    hooks.write_text(HOOKS)
    alone = callers[0] if len(callers) == 1 else None
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "schemathesis"),
            *("run", f"{stage.site.url}/openapi.json", "--no-color", "--seed", "1", *options),
            *(("--header", f"Authorization: Bearer {alone}") if alone else ()),
            # It would say, rightly, that there is no repository to fetch from: 503.
            *("--exclude-path", "/api/changes/{id}/diff"),
            *("--exclude-path", "/api/companies/{companyId}/repos/{name}/sync"),
            *("--exclude-path", "/api/companies/{companyId}/repos/{name}/lendable"),
        ],
        cwd=folder,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": str(hooks),
            "REMIT_KNOWN": known_to(stage, document, list(callers)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout.partition("SUMMARY")[2])
    found = done.stdout.partition("= FAILURES =")[2].partition("= WARNINGS =")[0]
    assert done.returncode == 0, found[:10_000] or done.stdout[-4000:]
    stage.operator.must("GET", "/api/me")  # the board was heard to the end


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_nothing_generated_from_the_description_breaks_the_server(
    stage: Stage, document: Mapping[str, Any], tmp_path: Path
) -> None:
    """As the board, as an agent and as nobody, in turns."""
    callers = [stage.operator.token, stage.ours.boss_key, None]
    checks = "not_a_server_error,status_code_conformance,content_type_conformance"
    checks += ",response_schema_conformance,unsupported_method"
    options = ("--phases", "fuzzing", "--max-examples", "1", "--checks", checks)
    send_generated(stage, document, tmp_path, callers, *options)


@pytest.mark.timeout(3600)
@pytest.mark.campaign("every boundary, many random values and sequences of calls, for minutes")
@pytest.mark.parametrize("who", ["board", "agent", "nobody"])
def test_every_boundary_of_the_description_holds_for_everybody(who: str, tmp_path: Path) -> None:
    """What it allows breaks nothing, what it forbids is refused, and answers are as it says."""
    with staged(tmp_path / "home") as stage:
        callers = {"board": stage.operator.token, "agent": stage.ours.boss_key, "nobody": None}
        checks = ["--checks", "all", "--exclude-checks", ",".join(LEFT_OUT)]
        document = stage.operator.must("GET", "/openapi.json")
        phases = ["--phases", "examples,coverage,fuzzing", "--max-examples", "20"]
        send_generated(stage, document, tmp_path, [callers[who]], *checks, *phases)
        # Of all operations there would be ten thousand pairs, more than the generator can go
        # through; so one noun at a time.
        for tag in sorted(tags(document)):
            one_after_another = ["--phases", "stateful", "--max-examples", "10"]
            one_after_another += ["--include-tag", tag]
            send_generated(stage, document, tmp_path, [callers[who]], *checks, *one_after_another)


def tags(document: Mapping[str, Any]) -> set[str]:
    """The nouns of which something can be made, and then asked for by its id."""
    made, asked_for = set(), set()
    for path, there in document["paths"].items():
        for operation in there.values():
            made |= set(operation["tags"]) if "201" in operation["responses"] else set()
            asked_for |= set(operation["tags"]) if "{id}" in path else set()
    return made & asked_for


#: Values around the bounds of a text, a word, a name and a time.
EDGES = ("", " ", "a", "null", "board", "web-designer", "-a", "a b", "2026-05-01T09:00:00Z", "soon")


@pytest.mark.parametrize("name", sorted(TYPES))
def test_a_type_takes_what_its_description_allows_and_nothing_else(name: str) -> None:
    kind = TypeAdapter(TYPES[name])
    schema = kind.json_schema()
    described_as = jsonschema_rs.validator_for(schema, validate_formats=True)
    longest = schema.get("maxLength", 60)
    edges = {*EDGES, "a" * longest, "a" * (longest + 1), *schema.get("enum", ())}
    for edge in edges:
        try:
            kind.validate_python(edge)
        except (ValidationError, BadInput):
            taken = False
        else:
            taken = True
        assert taken == described_as.is_valid(edge), (name, edge[:60])


#: One of each kind that JSON has.
ODD: tuple[Any, ...] = (None, True, False, 0, 1, 1.5, "", "1", "true", "x", [], [0], {}, {"x": 0})
#: Of a schema: which of the values of a type are meant. That is checked by verbs, too.
NARROWING = frozenset(
    {
        *("enum", "const", "minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "minItems", "maxItems"),
    }
)


def widened(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {key: widened(one) for key, one in schema.items() if key not in NARROWING}
    return [widened(one) for one in schema] if isinstance(schema, list) else schema


def every(kind: type[Body]) -> Iterator[type[Body]]:
    for one in kind.__subclasses__():
        yield one
        yield from every(one)


def is_refused(kind: type[Body], name: str, value: object) -> bool:
    try:
        kind.model_validate({name: value})
    except BadInput:
        return True
    except ValidationError as error:
        return any(one["loc"][:1] == (name,) for one in error.errors())
    return False


@pytest.mark.usefixtures("document")  # all bodies are worked out for it
def test_no_body_takes_a_value_of_another_type_than_described() -> None:
    """What JSON has for numbers and flags is not read out of texts, nor the other way round."""
    tried = 0
    for kind in every(Body):
        schema = widened(kind.model_json_schema())
        for name, field in schema.get("properties", {}).items():
            described_as = jsonschema_rs.validator_for({**field, "$defs": schema.get("$defs", {})})
            for odd in ODD:
                if not described_as.is_valid(odd):
                    tried += 1
                    assert is_refused(kind, name, odd), (kind.__name__, name, odd)
    assert tried > 2000


def test_what_no_verb_looks_at_is_as_described_all_the_same(stage: Stage) -> None:
    """Each was taken: an empty time as none, a note that nobody keeps, a query beside JSON."""
    board, ours = stage.ours.board, stage.ours
    here = f"/api/companies/{ours.company}"
    text = {"description": "A file", "content": "words"}
    run = {"reason": "x" * (LONGEST_REASON + 1)}
    for method, path, body in (
        ("GET", f"{here}/runs?until=", None),
        ("GET", f"{here}/events?since=", None),
        ("POST", f"/api/agents/{ours.ids['report']}/stop", {"note": "x" * (LONGEST_HALT + 1)}),
        ("POST", f"/api/runs/{ours.ids['run']}/cancel", run),
        ("POST", f"{here}/files?unlisted=null", text),
        ("POST", f"{here}/files?description={'x' * (LONGEST_DESCRIPTION + 1)}", text),
        ("GET", f"/api/files/{ours.ids['file']}/content?at=", None),
        ("GET", f"{here}/outcomes?status=", None),
    ):
        answer = board(method, path, body)
        assert (answer.status, answer.code) == (422, "invalid"), (path, answer.body)
