"""docs/configuration.md, made from the declarations in `settings.py`.

The meaning of a setting is the `#:` comment of its field there, the type is that of its value, and
each example is read as Remit reads it.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Final

from remit import settings
from remit.settings import Settings

PLACE: Final = Path(__file__).parents[3] / "docs/configuration.md"
#: For settings whose default is no example.
EXAMPLES: Final = {
    "database_url": "postgresql://remit@db.internal/remit",
    "blob_url": "s3://company/remit",
    "url": "https://remit.example.org",
    "proxies": "127.0.0.1, 10.0.0.0/8",
    "token": "rmt_…",
    "company": "Acme",
    "largest_import": "4096",
    "channel_servers": "telegram=http://127.0.0.1:8081",
}
_TYPES: Final = {
    str: "text",
    int: "whole number",
    bool: "`yes` or `no`",
    tuple: "list, with blanks or commas between",
    dict: "list of `NAME=VALUE`, with blanks or commas between",
}
_HEAD: Final = """# Configuration

Made by `python -m remit.entrypoints.reference` from `settings.py`.

A setting is looked up in this order; the first place that has it wins:

1. the option of the command, where it has one (`--url`, `--company`, `--token`, and others);
2. the environment variable `REMIT_NAME`;
3. `name = "value"` in `remit.toml` of the home folder. A value in quotes is always right;
4. the default.

`remit.toml` and the environment are read when a process starts: after a change, `remit down` and
`remit up`. Limits and the question before a hire are settings of a company, not of the
instance: `remit company set`, or [a file](apply.md). `remit doctor` shows the home folder, the
database, the store of files, the addresses and the proxies that are in force.

```toml
# ~/.remit/remit.toml
url = "https://remit.example.org"
proxies = "127.0.0.1"
keep_failed_workspaces = "48"
```

## Settings

"""
_TAIL: Final = """
## Prices

The table `[prices]`, last in the file, has prices of models for every company of the instance, in
dollars for a million tokens. They count after the [prices](budgets.md#prices) of an agent and of
its company, and before the list prices.

```toml
[prices]
"house-model" = {input = 1.25, output = 10, cached = 0.125}
```

## Other variables

| Variable | Meaning |
|---|---|
| `REMIT_DEBUG` | with `1`, a command that fails unexpectedly shows where in the program |
| `NO_COLOR` | with any value, the command line draws without colour |
| `ANTHROPIC_API_KEY`, … | the worker's [keys for models](runtime.md#what-is-lent-with-a-key) |
| `SSL_CERT_FILE` | the certificates that the command line believes, for an authority of your own |

## Variables that Remit sets

Programs of agents do not get the environment of the worker. They get what their adapter's settings
say, and:

| Variable | Meaning |
|---|---|
| `REMIT_URL`, `REMIT_TOKEN` | where the program reaches Remit, and the token of its run |
| `REMIT_AGENT`, `REMIT_BOSS` | the ids of the agent, and of its boss |
| `REMIT_RUN` | the id of the run |
| `REMIT_WORKSPACE` | the folder of the run, removed when it ends |
| `REMIT_CHECK` | `true` in a [check](repos.md#checks) of a change |

Names that begin with `REMIT_` are refused in the `env` of an agent's settings.
"""


def page() -> str:
    """Return docs/configuration.md."""
    meanings = described()
    lines = [
        "| Key in `remit.toml` | Variable | Type | Default | Meaning | Example |",
        "|---|---|---|---|---|---|",
        f"| | `REMIT_HOME` | folder | `~/.remit` | {meanings['home']} | `/srv/remit` |",
        *(_row(name, meanings[name]) for name in meanings if name in settings.known()),
    ]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def described() -> Mapping[str, str]:
    """Return the comment of each field of `Settings`."""
    source = Path(settings.__file__).read_text()
    lines = source.splitlines()
    (declared,) = (
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef) and node.name == Settings.__name__
    )
    return {
        field.target.id: " ".join(reversed(list(_comment(lines, field.lineno))))
        for field in declared.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }


def _comment(lines: list[str], line: int) -> Iterator[str]:
    """Yield the lines of the comment above a line, the last one first."""
    for text in reversed(lines[: line - 1]):
        code, mark, comment = text.partition("#:")
        if code.strip() or not mark:
            return
        yield comment.strip().replace("|", r"\|")


def _row(name: str, meaning: str) -> str:
    default = _default(name)
    example = EXAMPLES.get(name, default)
    kind = _TYPES[type(settings.known()[name](example))]
    shown = f"`{default}`" if default else ""
    variable = f"REMIT_{name.upper()}"
    return f'| `{name}` | `{variable}` | {kind} | {shown} | {meaning} | `{name} = "{example}"` |'


def _default(name: str) -> str:
    """Return the default as it would be written; empty if the comment has to say it."""
    (field,) = (field for field in fields(Settings) if field.name == name)
    default = None if field.default is MISSING else field.default
    if isinstance(default, bool):
        return "yes" if default else "no"
    return "" if default is None else str(default)
