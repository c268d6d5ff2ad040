"""Telegram: a bot of its own for each agent, through the Bot API. Needs the extra `telegram`.

Remit polls for messages, or with `webhookUrl` Telegram posts them; duplicates have the same id.

A message is one call, so that it is sent atomically: a text that is too long becomes a file. The
Bot API has no idempotency keys, so a message that may have arrived says so when it is resent.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from remit.adapters.contract import Check, Environment
from remit.adapters.settings import Config, SecretName
from remit.channels import parts
from remit.channels.contract import (
    Channel,
    Connection,
    Incoming,
    IncomingFile,
    Parcel,
    Posted,
    Sender,
    Undelivered,
    Unproven,
    Unreachable,
)
from remit.extras import how_to_install
from remit.model.messaging.authorship import parted

if TYPE_CHECKING:
    from aiogram import Bot
    from aiogram.types import CallbackQuery, Message, Update, User

_MOST_TEXT = 4096
_MOST_CAPTION = 1024
#: Time limit of a call that is not a long poll.
_SECONDS = 30
#: Between two checks whether Telegram still posts to this instance.
_LOOK_SECONDS = 10.0
_MOST_KNOWN = 1000
_AGAIN = "(sent again, because nobody knows whether it arrived)\n"
_HEARD = ["message", "edited_message", "callback_query"]


def _public(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an https address, such as https://remit.example.org")
    return text.rstrip("/")


class TelegramConfig(Config):
    secret_ref: SecretName = Field(
        description="Name of the secret of the company that is the bot's token, which @BotFather "
        "hands out. One bot is for one agent."
    )
    hear: Literal["addressed", "all"] = Field(
        default="addressed",
        description="In groups: only messages that mention the bot, reply to it or are commands, "
        "or all that Telegram shows it (@BotFather sets its privacy mode).",
    )
    webhook_url: Annotated[str, Field(max_length=200), AfterValidator(_public)] | None = Field(
        default=None,
        description="The address under which Telegram reaches this instance, such as "
        "https://remit.example.org: Telegram posts what comes to it. null: Remit asks Telegram, "
        "and needs no address.",
    )
    poll_seconds: int = Field(
        default=25, ge=1, le=50, description="How long one question for news may wait."
    )


class Telegram(Channel):
    """A bot in Telegram: people write to it directly or in groups, and tap buttons."""

    type = "telegram"
    Config = TelegramConfig
    safety = (
        (
            "Everybody who finds the bot can write to the agent. Their messages are from outside, "
            "unless their account is linked to a person of the company."
        ),
        "Everybody in a group reads what the agent says there.",
        "Telegram reads everything: a bot has no encrypted conversations.",
    )
    examples = {  # noqa: RUF012  # read only
        "A bot": {"secretRef": "telegram-bot"},
        "All that is said in its groups": {"secretRef": "telegram-bot", "hear": "all"},
        "Telegram posts what comes": {
            "secretRef": "telegram-bot",
            "webhookUrl": "https://remit.example.org",
        },
    }
    receives = True
    vouches = True
    taps = True
    #: Leaves room for `_AGAIN`.
    longest_shown = 4000
    most_files = 9
    largest_files = 45 * 1024 * 1024

    def check(
        self, config: TelegramConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del config, environment
        if find_spec("aiogram") is None:
            sentence = "The library for Telegram is not installed."
            return Check(False, sentence, how_to_install("telegram"))
        return Check(True, "It can be used; each binding names the secret with its bot's token.")

    async def probe(self, connection: Connection) -> Check:
        check = self.check()
        if not check.usable:
            return check
        try:
            async with _calling(connection) as bot:
                me = await bot.get_me()
        except Undelivered as error:
            return Check(False, f"Telegram: {error.sentence}.", "Check the bot's token.")
        return Check(True, f"The bot is @{me.username}.", "", {"bot": me.username})

    # ── out ─────────────────────────────────────────────────────────────────────────────────

    def size(self, text: str) -> int:
        return len(text.encode("utf-16-le", "surrogatepass")) // 2

    async def deliver(self, parcel: Parcel) -> str | None:
        text, files = _text(parcel), list(parcel.files)
        async with _calling(parcel) as bot:
            from aiogram.types import BufferedInputFile, InputMediaDocument

            to = _to(parcel.conversation)
            to |= {"reply_parameters": _answering(parcel), "request_timeout": _SECONDS}
            if not files and self.size(text) <= _MOST_TEXT:
                shown = {"reply_markup": _keyboard(parcel), **_without_previews()}
                return _id(await bot.send_message(text=text, **shown, **to))
            named = [(file.name, file.content) for file in files]
            if self.size(text) > _MOST_CAPTION:
                named.insert(0, ("message.txt", text.encode()))
                text = parts.cut(text, _MOST_CAPTION, self.size)
            documents = [BufferedInputFile(content, name) for name, content in named]
            if len(documents) == 1:
                sent = await bot.send_document(document=documents[0], caption=text or None, **to)
                return _id(sent)
            group: list[Any] = [
                # The caption belongs to the last file, so that it is shown below all.
                InputMediaDocument(
                    media=document, caption=text if number == len(documents) else None
                )
                for number, document in enumerate(documents, 1)
            ]
            return _id((await bot.send_media_group(media=group, **to))[0])

    async def edit(self, parcel: Parcel, outside: str) -> None:
        chat, _, message = outside.partition(".")
        async with _calling(parcel, gone_is_well=("message is not modified",)) as bot:
            await bot.edit_message_text(
                text=parts.cut(parcel.body, _MOST_TEXT, self.size),
                chat_id=int(chat),
                message_id=int(message),
                reply_markup=_keyboard(parcel),
                request_timeout=_SECONDS,
                **_without_previews(),
            )

    async def withdraw(self, connection: Connection, conversation: str, outside: str) -> None:
        del conversation
        chat, _, message = outside.partition(".")
        gone = ("message to delete not found", "message can't be deleted")
        async with _calling(connection, gone_is_well=gone) as bot:
            await bot.delete_message(
                chat_id=int(chat), message_id=int(message), request_timeout=_SECONDS
            )

    async def show_state(self, connection: Connection, conversation: str) -> None:
        async with _calling(connection) as bot:
            to = _to(conversation)
            await bot.send_chat_action(action="typing", request_timeout=_SECONDS, **to)

    # ── in ──────────────────────────────────────────────────────────────────────────────────

    async def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
        config: TelegramConfig = connection.config
        try:
            async with _calling(connection) as bot:
                me = await bot.get_me()
                await _offer(bot, connection)
                if config.webhook_url is not None:
                    async with aclosing(_posted_to_us(bot, connection)) as posted:
                        async for nothing in posted:
                            yield nothing
                await bot.delete_webhook()
                yield []  # a sign of life before the first long poll
                offset: int | None = None
                while True:
                    updates = await bot.get_updates(
                        offset=offset,
                        timeout=config.poll_seconds,
                        allowed_updates=_HEARD,
                        request_timeout=config.poll_seconds + _SECONDS,
                    )
                    messages = [_incoming(received, me, config.hear) for received in updates]
                    yield [message for message in messages if message is not None]
                    # The next offset acknowledges these updates to Telegram.
                    for update in updates:
                        offset = update.update_id + 1
                        if update.callback_query is not None:
                            await _quiet(bot, update.callback_query)
        except Undelivered as error:
            raise Unreachable(error.sentence, retry_after=error.retry_after) from error

    def prove(self, connection: Connection, headers: Mapping[str, str]) -> None:
        shown = headers.get("x-telegram-bot-api-secret-token", "")
        if connection.config.webhook_url is None or not connection.proves(shown):
            raise Unproven

    async def accept(self, connection: Connection, body: bytes) -> Posted:
        async with _calling(connection) as bot:
            from aiogram.types import Update

            try:
                update = Update.model_validate_json(body, context={"bot": bot})
            except ValueError:
                raise Undelivered("it is no update of Telegram", for_good=True) from None
            message = _incoming(update, await _me(bot, connection), connection.config.hear)
        tapped = update.callback_query
        # The answer to the post is a call that stops the button's progress indicator.
        answer = {"method": "answerCallbackQuery", "callback_query_id": tapped and tapped.id}
        return Posted([] if message is None else [message], answer if tapped else {})

    async def fetch(self, connection: Connection, reference: str, most: int) -> bytes:
        async with _calling(connection) as bot:
            file = await bot.get_file(reference, request_timeout=_SECONDS)
            if (file.file_size or 0) > most or not file.file_path:
                raise _too_large(most)
            into = _Bounded(most)
            await bot.download_file(file.file_path, into, timeout=_SECONDS)
            return into.getvalue()


#: Cache of each binding's bot account, which Telegram's posts do not name.
_known: dict[str, User] = {}


async def _me(bot: Bot, connection: Connection) -> User:
    me = _known.get(connection.binding)
    if me is None or me.id != bot.id:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        me = _known[connection.binding] = await bot.get_me(request_timeout=_SECONDS)
    return me


async def _posted_to_us(
    bot: Bot, connection: Connection
) -> AsyncGenerator[Sequence[Incoming], None]:
    """Register the webhook, and keep it registered while the caller iterates. It is checked
    regularly, because another process may remove it, such as one that was stopped late.

    It is always registered anew at the start, which resets Telegram's backoff after failed posts,
    such as those to a killed process. Failures before that are ignored.
    """
    url = f"{connection.config.webhook_url}/api/channels/telegram/{connection.binding}"
    post: dict[str, Any] = {"url": url, "secret_token": connection.proof}
    post |= {"allowed_updates": _HEARD, "request_timeout": _SECONDS}
    try:
        before = (await bot.get_webhook_info(request_timeout=_SECONDS)).last_error_date
        await bot.set_webhook(**post)
        while True:
            yield []
            await asyncio.sleep(_LOOK_SECONDS)
            told = await bot.get_webhook_info(request_timeout=_SECONDS)
            failed = told.last_error_date not in (None, before)
            if told.url == url and told.pending_update_count and failed:
                why = f"Telegram cannot post to us ({(told.last_error_message or '')[:120]})"
                raise Undelivered(why, retry_after=_LOOK_SECONDS)
            if told.url != url:
                await bot.set_webhook(**post)
    finally:
        with suppress(Exception):
            # Messages that come meanwhile stay with Telegram for a day.
            await bot.delete_webhook(request_timeout=_SECONDS)


class _Bounded(io.BytesIO):
    """Buffer with a limit, because a download may be larger than was announced."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def write(self, content: Any) -> int:
        if self.tell() + len(content) > self._most:
            raise _too_large(self._most)
        return super().write(content)


def _too_large(most: int) -> Undelivered:
    return Undelivered(f"it is larger than {most >> 20 or 1} MiB", for_good=True)


@asynccontextmanager
async def _calling(connection: Connection, gone_is_well: Sequence[str] = ()) -> AsyncIterator[Bot]:
    """Context manager: a bot for a few calls. Errors are translated without the request, which
    contains the token."""
    try:
        if "aiogram" not in sys.modules:
            # In a thread, because the import takes seconds.
            await asyncio.to_thread(import_module, "aiogram")
        from aiogram import Bot, exceptions
        from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
        from aiogram.utils.token import TokenValidationError
        from aiohttp import ClientError

        from remit.channels.guarded_session import LedElsewhere
        from remit.channels.telegram_session import GuardedAiohttpSession
    except ImportError:
        raise Undelivered("the library for Telegram is not installed") from None
    server = connection.server
    api = PRODUCTION if server is None else TelegramAPIServer.from_base(server)
    session = GuardedAiohttpSession(connection, api=api)
    client = await session.create_session()
    try:
        yield Bot(connection.key.decode().strip(), session=session)
    except TokenValidationError:
        raise Undelivered("the secret is not the token of a bot") from None
    except exceptions.TelegramRetryAfter as error:
        raise Undelivered("Telegram asks for patience", retry_after=error.retry_after) from None
    except exceptions.TelegramConflictError:
        raise Undelivered("another program listens with this bot's token") from None
    except exceptions.TelegramUnauthorizedError:
        raise Undelivered("Telegram does not know the bot's token") from None
    except exceptions.TelegramMigrateToChat as error:
        sentence = f"the group is {error.migrate_to_chat_id} now"
        raise Undelivered(sentence, for_good=True) from None
    except exceptions.TelegramNetworkError as error:
        if isinstance(error.__cause__, LedElsewhere):
            raise Undelivered(f"Telegram was not reached: {error.__cause__}") from None
        unsure = "Cannot connect" not in str(error)
        raise Undelivered("Telegram was not reached", unsure=unsure) from None
    except (
        ClientError
    ) as error:  # of a download; its own words may name the address, with the token
        why = f": {error}" if isinstance(error, LedElsewhere) else ""
        raise Undelivered(f"Telegram was not reached{why}", unsure=True) from None
    except exceptions.ClientDecodeError:
        raise Undelivered("what answered is not Telegram", unsure=True) from None
    except exceptions.TelegramServerError:
        raise Undelivered("Telegram has trouble", unsure=True) from None
    except exceptions.TelegramAPIError as error:
        message = error.message
        if any(phrase in message for phrase in gone_is_well):
            return
        raise Undelivered(f"Telegram refused it ({message[:120]})", for_good=True) from None
    finally:
        await client.close()  # the session's own `close` makes each message wait 250 ms more


def _text(parcel: Parcel) -> str:
    """The text, with what is added to it below the line that names the author."""
    subject = f"{parcel.subject}\n\n" if parcel.subject and parcel.reply_to is None else ""
    author, words = parted(parcel.body)
    return f"{author}{_AGAIN if parcel.again else ''}{subject}{words}"


def _to(conversation: str) -> dict[str, Any]:
    """Parse a chat and the topic in it: `-1001234` or `-1001234/5`."""
    chat, _, topic = conversation.partition("/")
    try:
        return {"chat_id": int(chat), "message_thread_id": int(topic) if topic else None}
    except ValueError:
        raise Undelivered("a chat of Telegram is a number", for_good=True) from None


def _answering(parcel: Parcel) -> Any:
    from aiogram.types import ReplyParameters

    _, _, message = (parcel.reply_to_outside or "").partition(".")
    number = message.partition(".")[0]
    if not number.isdecimal():
        return None
    return ReplyParameters(message_id=int(number), allow_sending_without_reply=True)


def _keyboard(parcel: Parcel) -> Any:
    from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup

    if not parcel.buttons:
        return None
    return InlineKeyboardMarkup(
        inline_keyboard=[
            [
                InlineKeyboardButton(text=button.label, callback_data=button.reference)
                for button in row
            ]
            for row in parcel.buttons
        ]
    )


def _without_previews() -> dict[str, Any]:
    """Turn off link previews: Telegram would fetch the address, and so leak data that an agent was
    made to write into it. Captions have no previews."""
    from aiogram.types import LinkPreviewOptions

    return {"link_preview_options": LinkPreviewOptions(is_disabled=True)}


async def _offer(bot: Bot, connection: Connection) -> None:
    """Register the commands that Telegram suggests to people."""
    from aiogram.exceptions import TelegramAPIError
    from aiogram.types import BotCommand

    offered = [BotCommand(command=name, description=help_) for name, help_ in connection.commands]
    if offered:
        with suppress(TelegramAPIError):
            await bot.set_my_commands(offered)


async def _quiet(bot: Bot, tapped: CallbackQuery) -> None:
    """Stop the button's progress indicator; failures are ignored."""
    from aiogram.exceptions import TelegramAPIError

    with suppress(TelegramAPIError):
        await bot.answer_callback_query(tapped.id)


def _id(message: Message) -> str:
    return f"{message.chat.id}.{message.message_id}"


def _conversation(message: Any) -> str:
    topic = message.message_thread_id if getattr(message, "is_topic_message", None) else None
    return f"{message.chat.id}/{topic}" if topic else str(message.chat.id)


def _incoming(update: Update, me: User, hear: str) -> Incoming | None:
    if update.callback_query is not None:
        return _tap(update.callback_query)
    message = update.message or update.edited_message
    if message is None:
        return None
    text = message.text or message.caption or ""
    files = _files(message)
    if not text and not files:
        return None  # such as a join, a poll or a location
    id_ = _id(message)
    addressed = hear == "all" or message.chat.type == "private" or _names(message, text, me)
    # A forwarded or edited message is not what its sender says now, so it is no command.
    if message.forward_origin is not None:
        text = f"[forwarded] {text}"
    if update.edited_message is not None:
        text, id_ = f"[edited] {text}", f"{id_}.{message.edit_date}"
    answered = message.reply_to_message
    return Incoming(
        id=id_,
        conversation=_conversation(message),
        sender=_sender(message),
        text=text,
        reply_to=None if answered is None else _id(answered),
        files=files,
        direct=message.chat.type == "private",
        addressed=addressed,
    )


def _tap(tapped: CallbackQuery) -> Incoming | None:
    if tapped.message is None or not tapped.data:
        return None
    return Incoming(
        id=f"tap.{tapped.id}",
        conversation=_conversation(tapped.message),
        sender=_person(tapped.from_user),
        tapped=tapped.data,
        direct=tapped.message.chat.type == "private",
    )


def _sender(message: Message) -> Sender:
    """Return the sender of a message; one who writes as a group or a channel is unverified."""
    if message.sender_chat is not None or message.from_user is None:
        chat = message.sender_chat or message.chat
        return Sender(f"chat:{chat.id}", chat.title or "a group", sure=False)
    return _person(message.from_user)


def _person(user: User) -> Sender:
    name = user.full_name + (f" (@{user.username})" if user.username else "")
    return Sender(str(user.id), name, sure=not user.is_bot)


def _names(message: Message, text: str, me: User) -> bool:
    """Return whether a message in a group is for the bot: a reply, a command or a mention."""
    answered = message.reply_to_message
    if answered is not None and answered.from_user is not None and answered.from_user.id == me.id:
        return True
    named = f"@{me.username}".casefold()
    if text.startswith("/"):
        first = text.split(maxsplit=1)[0].casefold()
        return "@" not in first or first.endswith(named)
    entities = message.entities or message.caption_entities or []
    return any(
        entity.type == "mention" and entity.extract_from(text).casefold() == named
        for entity in entities
    )


def _files(message: Message) -> list[IncomingFile]:
    files: list[IncomingFile] = []
    if message.photo:
        largest = message.photo[-1]
        files.append(
            IncomingFile(largest.file_id, "photo.jpg", "image/jpeg", largest.file_size or 0)
        )
    others: list[tuple[Any, str, str]] = [
        (message.document, "file", "application/octet-stream"),
        (message.audio, "audio", "audio/mpeg"),
        (message.voice, "voice.ogg", "audio/ogg"),
        (message.video, "video.mp4", "video/mp4"),
        (message.video_note, "video.mp4", "video/mp4"),
    ]
    for file, name, media_type in others:
        if file is not None:
            called = getattr(file, "file_name", None) or name
            kind = getattr(file, "mime_type", None) or media_type
            files.append(IncomingFile(file.file_id, called, kind, file.file_size or 0))
    return files
