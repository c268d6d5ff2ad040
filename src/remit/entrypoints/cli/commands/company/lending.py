"""`remit agent lend`: skills, commands and agents of a folder or a repository, lent to an agent."""

import base64
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.parameters import AGENT
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import BadInput, NotFound, TooLarge
from remit.model.connections.diff import visible
from remit.model.connections.lent_plugin import (
    LARGEST_PLUGIN,
    MOST_FILES,
    PLUGIN_FOLDER,
    PROJECT_FOLDERS,
    arranged,
)

_MOST_LOOKED_AT = 20_000
_MOST_LEFT_OUT = 20


@click.command(
    cls=Command,
    examples=(
        "remit agent lend writer ~/.claude",
        "remit agent lend writer skills/review --dry-run",
    ),
)
@click.argument("name", type=AGENT)
@click.argument("folder", required=False)
@option("--from-repo NAME", "Read the folder in a repository, instead of on this machine.")
@option("--ref REF", "Branch, tag or commit of the repository.")
@option(
    "--name NAME",
    "Prefix of each skill in a program; the folder's name unless said.",
    field="called",
)
@option("--remove NAME", "Take a plugin back.")
@option("--dry-run", "Only show what would be lent; nobody has to confirm that.")
@option("--text", "Show the text of each, too, which a model reads first.")
@option("--yes", "Do not ask for confirmation.")
def lend(session: Session, /, name: str, folder: str | None, **options: Any) -> None:
    """Lend skills, commands and agents of a folder to an agent, as a plugin; without a folder, list
    what it is lent.

    The folder is a project, a plugin, a program's home such as ~/.claude, or one skill. A copy of
    it is lent, without hooks, servers and settings; it is shown first.
    """
    target = path("agents", name, "lent")
    if options["remove"]:
        session.change("DELETE", f"{target}/{options['remove']}", tells="Its runs lose the plugin.")
        return
    if folder is None and not options["from_repo"]:
        session.show(session.client.get(target), partial(_draw_all, text=options["text"]))
        return
    if not (options["dry_run"] or options["yes"] or sys.stdin.isatty()):
        raise BadInput(
            "Lending is confirmed by a person, and this is no terminal.",
            "Add --dry-run to look without lending, or --yes to lend what you looked at.",
        )
    body, stayed = _asked(session, folder, options)
    shown = session.client.send("POST", target, {**body, "dryRun": True})
    shown["leftOut"] = [*stayed, *shown["leftOut"]]
    if options["dry_run"]:
        session.show(shown, lambda plugin: _draw(plugin, text=options["text"]))
        return
    if not options["yes"]:
        _draw(shown, text=options["text"], note=True)
        click.confirm("Lend this?", abort=True, err=True)
    lent = session.client.send("POST", target, {**body, "seen": shown["sha256"]})
    lent["leftOut"] = shown["leftOut"]
    session.show(lent, lambda plugin: _draw(plugin, text=options["text"]))


def _asked(session: Session, folder: str | None, options: View) -> tuple[View, list[str]]:
    """Return the body of the request, and the files that stay behind."""
    if options["from_repo"]:
        repo, at = options["from_repo"], folder or ""
        wanted = {"folder": at, **({"ref": options["ref"]} if options["ref"] else {})}
        address = f"{session.under_company('repos', repo, 'lendable')}?{urlencode(wanted)}"
        lendable = session.client.get(address)
        source = f"repo:{repo}{f' {at}' if at else ''} at {lendable['commit'][:12]}"
        files = {file["path"]: file["content"] for file in lendable["files"]}
        stayed = lendable["leftOut"]
        named = Path(at).name.lstrip(".") or repo
    else:
        place = Path(os.path.expanduser(folder or "")).absolute()
        contents, stayed = read_folder(place)
        files = {each: base64.b64encode(raw).decode() for each, raw in contents.items()}
        source, named = str(place), place.name.lstrip(".")
    called = options["called"] or named
    return {"name": called, "source": source, "files": files}, stayed


def read_folder(folder: Path) -> tuple[dict[str, bytes], list[str]]:
    """Read what can be lent of a folder of this machine. Links in it stay behind."""
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}.", "Check the path.")
    paths = list(_files(folder))
    chosen, stayed = arranged(paths, folder.name)
    size = sum((folder / source).stat().st_size for source in chosen.values())
    if len(chosen) > MOST_FILES or size > LARGEST_PLUGIN:
        raise TooLarge(
            f"A plugin has at most {MOST_FILES} files and {LARGEST_PLUGIN >> 10} KiB.",
            "Lend a folder in it.",
        )
    return {path: (folder / source).read_bytes() for path, source in chosen.items()}, stayed


def _files(folder: Path) -> list[str]:
    """Return the paths of files that may be lent; of a program's home, the rest by its names alone,
    because it holds every conversation."""

    def there(*names: str) -> list[Path]:
        places = [folder / name for name in names]
        return [place for place in places if place.is_dir() and not place.is_symlink()]

    project = [] if there(PLUGIN_FOLDER) else there(*PROJECT_FOLDERS)
    own = [] if project else there("skills", "commands", "agents")
    looked = project or own or [folder]
    paths_seen: list[str] = []
    if own:
        known = {place.name for place in own}
        paths_seen = sorted(name for name in os.listdir(folder) if name not in known)
    for root in looked:
        for here, folders, names in os.walk(root):
            folders[:] = [inner for inner in folders if inner not in (".git", "node_modules")]
            places = [Path(here, name) for name in sorted(names)]
            plain = [each for each in places if each.is_file() and not each.is_symlink()]
            paths_seen += [str(each.relative_to(folder)) for each in plain]
            if len(paths_seen) > _MOST_LOOKED_AT:
                raise TooLarge(f"{folder} has too many files.", "Name the folder with the skills.")
    return paths_seen


def _draw_all(plugins: list[View], *, text: bool) -> None:
    if not plugins:
        output.say("It is lent no plugin.")
    for plugin in plugins:
        _draw(plugin, text=text)


def _draw(plugin: View, *, text: bool = False, note: bool = False) -> None:
    say = output.note if note else output.say
    would = "would be lent" if plugin["dryRun"] else "is lent"
    say(f"{plugin['name']} {would}, from {visible(plugin['source'])}:")
    for item in plugin["items"]:
        about = f": {visible(item['description'], 200)}" if item["description"] else ""
        say(f"  {item['kind']} {plugin['name']}:{visible(item['name'])}{about}")
        if len(item["files"]) > 1:
            say(f"    files: {', '.join(map(visible, item['files']))}")
        for line in item["starts"]:
            say(f"    starts when it is used: {visible(line)}")
        for line in item["text"].splitlines() if text else ():
            say(f"    | {visible(line)}")
    stayed = plugin["leftOut"]
    if stayed:
        more = f" and {len(stayed) - _MOST_LEFT_OUT} more" if len(stayed) > _MOST_LEFT_OUT else ""
        say(f"  left out: {', '.join(map(visible, stayed[:_MOST_LEFT_OUT]))}{more}")
