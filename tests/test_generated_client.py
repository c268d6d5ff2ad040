"""A client generated from /openapi.json: it has every operation, and reads every answer."""

from __future__ import annotations

import importlib
import inspect
import io
import json
import re
import subprocess
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote

import pytest

from tests.attack_stage import Stage, staged
from tests.test_attacks_ids import ASKED, Operation, bodies, operations

PACKAGE = "generated_remit"
#: The generator knows no tar and no drawing; as bytes they are the same.
SETTINGS = {
    "content_type_overrides": {
        "application/x-tar": "application/octet-stream",
        "image/svg+xml": "application/octet-stream",
    },
    "post_hooks": [],
}
#: What ends something comes last, so that there is something to call everything else with.
ENDING = (
    *("reject", "approve", "complete", "close", "cancel", "terminate", "purge", "DELETE"),
    *("stop", "tokens"),
)
#: A stream that goes on for as long as somebody listens.
ENDLESS = frozenset({"stream_events", "read_run_log"})
#: So many do what they are asked; the others are refused, because of who calls or of the state that
#: things are in, and the refusals are read as well.
LEAST_DONE = 125
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture(scope="module")
def document(stage: Stage) -> Mapping[str, Any]:
    found: dict[str, Any] = stage.operator.must("GET", "/openapi.json")
    return found


@pytest.fixture(scope="module")
def generated(
    document: Mapping[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(json.dumps(document))
    (folder / "settings.json").write_text(json.dumps(SETTINGS))
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "openapi-python-client"),
            *("generate", "--fail-on-warning", "--meta", "none"),
            *("--path", str(folder / "openapi.json"), "--config", str(folder / "settings.json")),
            *("--output-path", str(folder / PACKAGE)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield PACKAGE
    sys.path.remove(str(folder))
    for name in [one for one in sys.modules if one.split(".")[0] == PACKAGE]:
        del sys.modules[name]


def described(document: Mapping[str, Any]) -> Iterator[tuple[Operation, dict[str, Any]]]:
    for operation in operations(document):
        yield operation, document["paths"][operation.template][operation.method.lower()]


def module_of(operation: Mapping[str, Any]) -> ModuleType:
    tag = operation["tags"][0].replace("-", "_").replace(" ", "_")
    return importlib.import_module(f"{PACKAGE}.api.{tag}.{operation['operationId']}")


@pytest.mark.usefixtures("generated")
def test_every_operation_is_in_a_generated_client(document: Mapping[str, Any]) -> None:
    made = [module_of(operation) for _, operation in described(document)]
    assert len(made) == len({module.__name__ for module in made}) > 150
    for module in made:
        assert callable(module.sync_detailed)
        assert callable(module.asyncio_detailed)


@pytest.mark.usefixtures("generated")
def test_a_generated_client_reads_the_answer_of_every_operation(
    stage: Stage, document: Mapping[str, Any]
) -> None:
    client_module = importlib.import_module(f"{PACKAGE}.client")
    clients = [
        client_module.AuthenticatedClient(
            stage.site.url, token, raise_on_unexpected_status=True, timeout=30
        )
        for token in (stage.operator.token, stage.ours.boss_key)
    ]
    done = set()
    wrong, untried = [], []
    for operation, said in sorted(described(document), key=lambda one: ending(str(one[0]))):
        name = said["operationId"]
        module = module_of(said)
        if name in ENDLESS:
            continue
        for client in clients:
            arguments = given(module, operation, stage)
            response = client.get_httpx_client().request(**module._get_kwargs(**arguments))
            try:
                # Raises when a status is not described; reads the body by its schema.
                parsed = module._build_response(client=client, response=response).parsed
            except Exception as error:
                wrong.append(f"{name} {response.status_code}: {error!r}")
                break
            if response.headers.get("content-type", "").startswith("application/json") and (
                parsed is None or as_document(parsed) != at_whole_seconds(response.json())
            ):
                wrong.append(f"{name} {response.status_code}: {parsed} {response.text}")
            if response.is_success:
                done.add(name)
                break
        else:
            untried.append(f"{name}: {response.status_code} {response.text[:200]}")
    for client in clients:
        client.get_httpx_client().close()
    print("\n".join(untried))
    assert wrong == []
    assert len(done) >= LEAST_DONE


def ending(operation: str) -> int:
    return max((number for number, word in enumerate(ENDING, 1) if word in operation), default=0)


def given(module: ModuleType, operation: Operation, stage: Stage) -> dict[str, Any]:
    """The parts of the path, a body that it takes, and what else it cannot do without."""
    signature = inspect.signature(module._get_kwargs)
    hints = typing.get_type_hints(module._get_kwargs, vars(module))
    parts = iter(names_in(operation, stage))
    asked = ASKED.get(str(operation), {})
    found: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD:
            found[name] = next(parts)
        elif name == "body":
            found |= body_of(hints[name], bodies(stage.ours).get(str(operation)))
        elif name == "at" and "at" in asked:
            found[name] = asked["at"]
        elif name == "if_match":
            found[name] = f'"1:{"0" * 64}"'
    return found


def names_in(operation: Operation, stage: Stage) -> list[str]:
    """What stands in the path: things that there are, as far as the stage has them."""
    pattern = re.sub(r"{\w+}", "([^/]+)", operation.template)
    try:
        values = re.fullmatch(pattern, operation.path(stage.ours))
    except KeyError:
        return [stage.ours.company] * operation.template.count("{")
    assert values is not None, operation
    return [unquote(one) for one in values.groups()]


def body_of(hint: Any, body: Any) -> dict[str, Any]:
    """As the client takes it: a model of its own, or bytes."""
    kinds = [one for one in (hint, *typing.get_args(hint)) if isinstance(one, type)]
    model = next((one for one in kinds if hasattr(one, "from_dict")), None)
    if model is not None:
        return {"body": model.from_dict(body or {})}
    file = next(one for one in kinds if one.__name__ == "File")
    return {"body": file(payload=io.BytesIO(b"some bytes"))}


def as_document(parsed: Any) -> Any:
    if isinstance(parsed, list):
        return [as_document(one) for one in parsed]
    return at_whole_seconds(parsed.to_dict() if hasattr(parsed, "to_dict") else parsed)


def at_whole_seconds(document: Any) -> Any:
    """A time at a whole second can be written in two ways."""
    return json.loads(re.sub(r"(:\d\d)\.0+\+00:00", r"\1+00:00", json.dumps(document)))
