"""Slack, through Socket Mode: Remit opens the connection, so that no address of it has to be
reachable, and requests are trusted only on that connection.

The secret has two tokens: of the bot (`xoxb-…`), for sending, and of the app (`xapp-…`), for
receiving.
"""

import asyncio
import contextlib
import html
import importlib.util
import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import Field

from remit.adapters.contract import Check, Environment
from remit.adapters.settings import Config, SecretName
from remit.channels.contract import (
    Attachment,
    Channel,
    Connection,
    Incoming,
    IncomingFile,
    Parcel,
    Sender,
    Undelivered,
    Unreachable,
)
from remit.channels.parts import split
from remit.clock import SECOND
from remit.extras import how_to_install
from remit.model.messaging.authorship import parted

T = TypeVar("T")

SECONDS = 20
#: Longest text after escaping; Slack truncates longer ones.
LONGEST_TEXT = 38_000
#: Characters of a long text that are shown beside its file.
_EXCERPT = 1000
#: Part of every address that Slack turns into a link.
_LINKS = "://"
#: Longest text of one block, in a message with buttons.
_LONGEST_PART = 2_900
_MOST_PARTS = 40
#: How often an idle receiver yields a sign of life.
_QUIET_SECONDS = 20.0
_MOST_AT_ONCE = 50
_MOST_NAMES = 10_000
_EVENT = "remit_message"
#: Messages per request, and most requests, in the search for an earlier delivery.
_LOOK_BACK = 200
_MOST_PAGES = 20
#: Errors for which a retry is useless.
_FOR_GOOD = frozenset(
    {
        *("channel_not_found", "not_in_channel", "is_archived", "msg_too_long", "no_text"),
        *("invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"),
        *("missing_scope", "restricted_action", "user_not_found", "cant_update_message"),
        *("edit_window_closed", "invalid_blocks", "invalid_arguments", "thread_not_found"),
        *("message_not_found", "cannot_dm_bot", "org_login_required", "access_denied"),
    }
)
_MENTION = re.compile(r"<@[UW][A-Z0-9]+(?:\|[^<>]*)?>")
_CALLED = re.compile(r"\s*<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>[:,]?\s*")
_LINK = re.compile(r"<((?:https?|mailto):[^|<>]+)(?:\|[^<>]*)?>")
_PLACE = re.compile(r"(?P<channel>[CDG][A-Z0-9]{2,30})(?:/(?P<thread>\d{1,12}\.\d{1,8}))?")


class SlackConfig(Config):
    secret_ref: SecretName = Field(
        description="Name of a secret of the company: the bot's token (xoxb-…) and the app's "
        "(xapp-…), with a blank between them."
    )
    rooms: Annotated[
        list[Annotated[str, Field(pattern=r"^[CG][A-Z0-9]{2,30}$")]], Field(max_length=200)
    ] = Field(
        default=[],
        description="Ids of the channels in which the agent listens when it is mentioned. Empty: "
        "wherever it was invited.",
    )


class Slack(Channel):
    """A Slack app: direct messages, and rooms where it is mentioned."""

    type = "slack"
    Config = SlackConfig
    receives = True
    vouches = True
    taps = True
    #: Slack splits longer messages.
    longest_shown = 3800
    most_files = 10
    safety = (
        "Everybody in a room reads what the agent says there.",
        "In a room it hears only what mentions it.",
    )
    examples = {  # noqa: RUF012  # read only
        "Wherever it is invited": {"secretRef": "slack"},
        "In one room, and directly": {"secretRef": "slack", "rooms": ["C0123456789"]},
    }

    def check(
        self, config: SlackConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del environment, config
        missing = [
            name for name in ("slack_sdk", "aiohttp") if importlib.util.find_spec(name) is None
        ]
        if missing:
            sentence = f"Packages for Slack are not installed: {', '.join(missing)}."
            return Check(False, sentence, how_to_install("slack"))
        return Check(True, "It can be used; each binding names the tokens of its app.")

    async def probe(self, connection: Connection) -> Check:
        try:
            async with _calling(connection) as (web, app):
                known = await _asked(web.auth_test())
                await _asked(web.apps_connections_open(app_token=app))
        except Undelivered as error:
            step = "Look at the tokens of the app, and at its Socket Mode."
            return Check(False, f"Slack does not know us: {error.sentence}.", step)
        return Check(True, f"Slack knows {known.get('user')} in {known.get('team')}.")

    # ── out ─────────────────────────────────────────────────────────────────────────────────────

    def size(self, text: str) -> int:
        return _size(text)

    async def deliver(self, parcel: Parcel) -> str | None:
        """Send one message, atomically; one with files has no id and cannot be edited."""
        channel, thread = _place(parcel)
        text, files = _written(parcel)
        async with _calling(parcel) as (web, _):
            if parcel.again:
                there = await _found(web, parcel, channel, thread, text, files)
                if there is not None:
                    return f"{channel}:{there}"
            if files:
                uploads = [
                    {"content": file.content, "filename": file.name, "title": file.name}
                    for file in files
                ]
                await _asked(
                    web.files_upload_v2(
                        channel=channel,
                        thread_ts=thread,
                        initial_comment=text,
                        file_uploads=uploads,
                    )
                )
                return None
            answer = await _asked(
                web.chat_postMessage(
                    channel=channel,
                    text=text,
                    thread_ts=thread,
                    blocks=_blocks(parcel) or None,
                    metadata={"event_type": _EVENT, "event_payload": {"id": parcel.id}},
                    mrkdwn=False,
                    unfurl_links=False,
                    unfurl_media=False,
                )
            )
        return f"{channel}:{answer['ts']}"

    async def edit(self, parcel: Parcel, outside: str) -> None:
        channel, _, stamp = outside.partition(":")
        new = {"text": escaped(parcel.body)[:LONGEST_TEXT], "blocks": _blocks(parcel)}
        async with _calling(parcel) as (web, _):
            await _asked(web.chat_update(channel=channel, ts=stamp, **new))

    async def withdraw(self, connection: Connection, conversation: str, outside: str) -> None:
        del conversation
        channel, _, stamp = outside.partition(":")
        try:
            async with _calling(connection) as (web, _):
                await _asked(web.chat_delete(channel=channel, ts=stamp))
        except Undelivered as error:
            if "message_not_found" not in error.sentence:
                raise

    # ── in ──────────────────────────────────────────────────────────────────────────────────────

    async def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        async with _calling(connection, failure=Unreachable) as (web, app):
            listening = aclosing(_listened(connection, web, app))
            async with listening as batches:
                async for batch in batches:
                    yield batch

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        import aiohttp

        from remit.channels import guarded_session

        async with _calling(connection) as (web, _):
            file = (await _asked(web.files_info(file=reference)))["file"]
        if int(file.get("size", 0)) > most:
            raise Undelivered("it is too large", for_good=True)
        url = str(file.get("url_private_download") or file.get("url_private") or "")
        if not _is_slacks(url, connection.server):
            raise Undelivered("the file is not at Slack", for_good=True)
        headers = {"Authorization": f"Bearer {web.token}"}
        try:
            async with (
                guarded_session.session(connection, timeout=_time_limit()) as session,
                session.get(url, headers=headers, allow_redirects=False) as answer,
            ):
                if answer.status != 200:
                    raise Undelivered(f"Slack answered {answer.status}")
                content = b""
                async for piece in answer.content.iter_chunked(64 * 1024):
                    content += piece
                    if len(content) > most:
                        raise Undelivered("it is too large", for_good=True)
                return content
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Undelivered(f"Slack does not answer ({type(error).__name__})") from error


async def _listened(
    connection: Connection, web: Any, app: str
) -> AsyncGenerator[Sequence[Incoming], None]:
    """Yield messages from the connection of Socket Mode."""
    from slack_sdk.socket_mode.aiohttp import SocketModeClient
    from slack_sdk.socket_mode.response import SocketModeResponse

    from remit.channels import guarded_session

    try:
        bot = await _asked(web.auth_test())
    except Undelivered as error:
        raise Unreachable(error.sentence, retry_after=error.retry_after) from error
    coming: asyncio.Queue[Any] = asyncio.Queue()

    async def listen(_: Any, request: Any) -> None:
        coming.put_nowait(request)

    socket_client = SocketModeClient(app_token=app, web_client=web, auto_reconnect_enabled=True)
    _without_proxy(socket_client)
    client = cast(Any, socket_client)  # its methods have no types
    await client.aiohttp_client_session.close()
    client.aiohttp_client_session = guarded_session.session(connection)
    client.socket_mode_request_listeners.append(listen)
    names: dict[str, str | None] = {}
    try:
        try:
            # The library tries again and again by itself.
            await _asked(asyncio.wait_for(client.connect(), SECONDS))
        except Undelivered as error:
            raise Unreachable(error.sentence, retry_after=error.retry_after) from error
        yield []
        silent = 0
        while True:
            requests = await _batch(coming)
            messages = (
                understood(request.type, request.payload, connection.config, bot)
                for request in requests
            )
            yield await _named(
                web, names, [message for message in messages if message is not None], bot
            )
            for request in requests:
                # The message is stored by now; Slack resends unacknowledged ones.
                await client.send_socket_mode_response(SocketModeResponse(request.envelope_id))
            if requests:
                yield []
            silent = 0 if requests or await client.is_connected() else silent + 1
            if silent > 2:
                raise Unreachable("Slack ended the connection")
    finally:
        with contextlib.suppress(Exception):
            await client.close()


def understood(
    kind: str, payload: Mapping[str, Any], config: SlackConfig, bot: Any
) -> Incoming | None:
    """Convert a request to a message or a tap; None if it is not for the agent."""
    if kind == "interactive":
        return _tap(payload, config, bot)
    event = payload.get("event") or {}
    channel, stamp, user = (str(event.get(key) or "") for key in ("channel", "ts", "user"))
    direct = event.get("type") == "message" and event.get("channel_type") == "im"
    mentioned = event.get("type") == "app_mention"
    if not (direct or mentioned) or not (channel and stamp and user) or event.get("bot_id"):
        return None
    if user == bot.get("user_id") or event.get("subtype") not in (None, "file_share"):
        return None
    homes = (event.get("user_team"), (event.get("user_profile") or {}).get("team"))
    sender = _sender(payload, user, (*homes, event.get("source_team")), event.get("team"), bot)
    if not direct and config.rooms and channel not in config.rooms:
        return None
    thread = str(event.get("thread_ts") or "")
    # In a room, answers go to a thread, so that others are not disturbed.
    conversation = channel if direct else f"{channel}/{thread or stamp}"
    answers = thread and thread != stamp
    return Incoming(
        id=":".join([channel, stamp, *([thread] if answers else [])]),
        conversation=conversation,
        sender=sender,
        text=plain(str(event.get("text") or ""), str(bot.get("user_id") or "")),
        reply_to=f"{channel}:{thread}" if answers else None,
        files=[
            IncomingFile(
                str(file["id"]),
                str(file.get("name") or file["id"]),
                str(file.get("mimetype") or "application/octet-stream"),
                int(file.get("size") or 0),
            )
            for file in event.get("files") or []
            if file.get("id")
        ],
        direct=direct,
    )


def _tap(payload: Mapping[str, Any], config: SlackConfig, bot: Any) -> Incoming | None:
    actions = payload.get("actions") or []
    if payload.get("type") != "block_actions" or len(actions) != 1:
        return None
    place, who = payload.get("container") or {}, payload.get("user") or {}
    user = str(who.get("id") or "")
    channel, stamp = str(place.get("channel_id") or ""), str(place.get("message_ts") or "")
    if not (channel and stamp and user) or not actions[0].get("value"):
        return None
    direct = channel.startswith("D")
    if not direct and config.rooms and channel not in config.rooms:
        return None
    thread = str(place.get("thread_ts") or stamp)
    return Incoming(
        id=f"{channel}:{stamp}:tap:{user}:{actions[0].get('action_ts')}"[:200],
        conversation=channel if direct else f"{channel}/{thread}",
        sender=_sender(payload, user, (who.get("team_id"),), None, bot),
        tapped=str(actions[0]["value"]),
        direct=direct,
    )


def _sender(
    payload: Mapping[str, Any], user: str, homes: Sequence[Any], of_message: Any, bot: Any
) -> Sender:
    """Return the sender by workspace and user, because a user's id is unique only in a workspace.

    Rooms may be shared with other workspaces, so the workspace is the user's and not the event's;
    if several are named, a foreign one. If none is named in a shared room, the sender is unknown.
    """
    known = [str(home) for home in homes if home]
    foreign = [home for home in known if home != bot.get("team_id", home)]
    of_event = payload.get("team_id") or (payload.get("team") or {}).get("id") or ""
    team = next(iter([*foreign, *known]), str(of_message or of_event))
    sure = bool(known or of_message) or not payload.get("is_ext_shared_channel")
    return Sender(f"{team}:{user}", user, sure=sure)


def plain(text: str, bot: str) -> str:
    """Return the text without Slack's markup, and without the leading mention of the bot."""
    called = _CALLED.match(text)
    text = text[called.end() :] if called and called[1] == bot else text
    text = _MENTION.sub(lambda mention: "@" + mention[0][2:-1].partition("|")[0], text)
    return html.unescape(_LINK.sub(lambda link: link[1], text))


def escaped(text: str) -> str:
    """Escape Slack's markup in a text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _size(text: str) -> int:
    return len(escaped(text).encode("utf-16-le", "surrogatepass")) // 2


def _written(parcel: Parcel) -> tuple[str, list[Attachment]]:
    """Return the escaped text and the files. A text that is too long becomes a file, and so does
    one with a link beside files: Slack would fetch a preview, which could leak data that an agent
    put into the address, and only messages without files can turn previews off."""
    text, files = escaped(parcel.body), list(parcel.files)
    if len(text) <= LONGEST_TEXT and not (files and _LINKS in text):
        return text, files
    author, words = parted(parcel.body)
    excerpt = "" if _LINKS in words[:_EXCERPT] else f"{escaped(words[:_EXCERPT])}\n"
    text = f"{escaped(author)}{excerpt}… (all of it is in the file)"
    return text, [Attachment("message.txt", "text/plain", parcel.body.encode()), *files]


def _blocks(parcel: Parcel) -> list[dict[str, Any]]:
    """Return the blocks of a message of Remit or with buttons; others have none. Slack shows their
    text as it stands, without emoji in the place of words."""
    if not (parcel.buttons or parcel.sender == "remit"):
        return []
    blocks: list[dict[str, Any]] = [
        {"type": "section", "text": {"type": "plain_text", "text": part, "emoji": False}}
        for part in split(parcel.body, _LONGEST_PART, _size)[:_MOST_PARTS]
        if part.strip()
    ]
    for number, row in enumerate(parcel.buttons):
        elements = [
            {
                "type": "button",
                "action_id": f"remit-{number}-{place}",
                "text": {"type": "plain_text", "text": button.label[:75], "emoji": False},
                "value": button.reference,
            }
            for place, button in enumerate(row)
        ]
        blocks.append({"type": "actions", "elements": elements})
    return blocks


def _place(parcel: Parcel) -> tuple[str, str | None]:
    """Return the channel and the thread: that of the conversation, or of the answered message."""
    place = _PLACE.fullmatch(parcel.conversation)
    if place is None:
        raise Undelivered("that is no place in Slack", for_good=True)
    thread = place["thread"]
    answered = (parcel.reply_to_outside or "").split(":")
    if thread is None and answered[0] == place["channel"] and len(answered) > 1:
        thread = answered[2] if len(answered) == 3 else answered[1]
    return place["channel"], thread


async def _found(
    web: Any,
    parcel: Parcel,
    channel: str,
    thread: str | None,
    text: str,
    files: Sequence[Attachment],
) -> str | None:
    """Return the timestamp of an earlier delivery of the message, if there is one: found by the id
    in its metadata, or, with files, by its text and the files' names and sizes."""
    sent = [(file.name, len(file.content)) for file in files]
    query: dict[str, Any] = {"channel": channel, "limit": _LOOK_BACK, "include_all_metadata": True}
    query["oldest"] = f"{max(parcel.created_at // SECOND - 60, 0)}.000000"
    look = web.conversations_replies if thread else web.conversations_history
    query |= {"ts": thread} if thread else {}
    for _ in range(_MOST_PAGES):
        answer: Any = await _asked(look(**query))
        for message in answer.get("messages", []):
            about = message.get("metadata") or {}
            known = about.get("event_type") == _EVENT and about["event_payload"]["id"] == parcel.id
            there = [(file.get("name"), file.get("size")) for file in message.get("files") or []]
            same = there == sent and plain(message["text"], "") == plain(text, "")
            if known or (there and message.get("bot_id") and same):
                return str(message["ts"])
        query["cursor"] = (answer.get("response_metadata") or {}).get("next_cursor")
        if not query["cursor"]:
            break
    return None


@contextlib.asynccontextmanager
async def _calling(
    connection: Connection, failure: type[Exception] = Undelivered
) -> AsyncIterator[tuple[Any, str]]:
    """Context manager: a client with the bot's token, and the app's token."""
    from slack_sdk.web.async_client import AsyncWebClient

    from remit.channels import guarded_session

    words = connection.key.decode("utf-8", "replace").split()
    bot = next((word for word in words if word.startswith("xoxb-")), None)
    app = next((word for word in words if word.startswith("xapp-")), None)
    if bot is None or app is None:
        raise failure("the secret does not have a token xoxb-… and a token xapp-…")
    server = f"{connection.server}/api/" if connection.server else AsyncWebClient.BASE_URL
    async with guarded_session.session(connection, timeout=_time_limit()) as session:
        web = AsyncWebClient(token=bot, base_url=server, session=session, retry_handlers=[])
        _without_proxy(web)
        yield web, app


def _without_proxy(client: Any) -> None:
    """Have a client of the library use no proxy; it takes the one that the environment names."""
    client.proxy = None


def _time_limit() -> Any:
    import aiohttp

    return aiohttp.ClientTimeout(total=SECONDS)


async def _asked(request: Awaitable[T]) -> T:
    """Await Slack's answer; errors are classified for retries."""
    import aiohttp
    from slack_sdk.errors import SlackApiError, SlackClientError

    from remit.channels.guarded_session import LedElsewhere

    try:
        return await request
    except LedElsewhere as error:
        raise Undelivered(f"Slack was not reached: {error}") from error
    except SlackApiError as error:
        answer: Any = error.response
        code = str(answer.get("error") or answer.status_code)
        if code == "ratelimited" or answer.status_code == 429:
            wait = (answer.headers or {}).get("Retry-After", "30")
            seconds = float(wait) if str(wait).isdigit() else 30.0
            raise Undelivered("Slack asks to wait", retry_after=seconds) from error
        sentence = f"Slack answered {code[:60]}"
        raise Undelivered(sentence, for_good=code in _FOR_GOOD) from error
    except (aiohttp.ClientConnectorError, SlackClientError) as error:
        raise Undelivered(f"Slack is not there ({type(error).__name__})") from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        sentence = f"Slack did not answer ({type(error).__name__})"
        raise Undelivered(sentence, unsure=True) from error


async def _batch(coming: asyncio.Queue[Any]) -> list[Any]:
    """Return the next messages, or none after a time."""
    try:
        requests = [await asyncio.wait_for(coming.get(), _QUIET_SECONDS)]
    except TimeoutError:
        return []
    while not coming.empty() and len(requests) < _MOST_AT_ONCE:
        requests.append(coming.get_nowait())
    return requests


async def _named(
    web: Any, names: dict[str, str | None], messages: Sequence[Incoming], bot: Any
) -> list[Incoming]:
    """Add the senders' names, with the workspace of foreign ones. Each name is looked up once, all
    concurrently; a failed look-up leaves the id. `names` caches them, with None for a user whom
    Slack assigns to another workspace than the message did, so that the sender is unknown."""

    async def ask(sender: str) -> None:
        team, _, user = sender.partition(":")
        names[sender] = user
        with contextlib.suppress(Undelivered):
            known = (await _asked(web.users_info(user=user)))["user"]
            shown = (known.get("profile") or {}).get("real_name") or known.get("real_name")
            names[sender] = f"{shown or known.get('name')} (@{known.get('name')})"
            # Within an enterprise a user may speak in other workspaces than their own.
            if known.get("team_id", team) != team and not bot.get("enterprise_id"):
                names[sender] = None

    def told(sender: Sender) -> Sender:
        team, _, user = sender.id.partition(":")
        name = names[sender.id]
        sure = sender.sure and name is not None
        outside = f" of the workspace {team}" if team != bot.get("team_id") else ""
        return replace(sender, name=f"{name or user}{outside}", sure=sure)

    if len(names) > _MOST_NAMES:
        names.clear()
    await asyncio.gather(*map(ask, {message.sender.id for message in messages} - set(names)))
    return [replace(message, sender=told(message.sender)) for message in messages]


def _is_slacks(url: str, server: str | None) -> bool:
    """Return whether an address belongs to Slack, so that the token may be sent there."""
    parts = urlsplit(url)
    if server is not None:
        return url.startswith(f"{server}/")
    host = parts.hostname or ""
    return parts.scheme == "https" and (host == "slack.com" or host.endswith(".slack.com"))
