"""Transports of the MCP SDK's client: a program of ours, or an address.

The SDK's own ways take in as much as a server likes to say, and start programs themselves.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from remit.errors import TooLarge
from remit.runtime.runs.upstream import Program

CONNECT_SECONDS: Final = 10.0
#: Of one answer.
LARGEST_ANSWER: Final = 8 << 20

Streams = tuple[Any, Any]


@asynccontextmanager
async def over_pipes(program: Program, ended: Callable[[str], None]) -> AsyncIterator[Streams]:
    """Each line is one message; what is none is not for us. `ended` is told when nothing more will
    come, and why."""
    heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
    async with heard, incoming, outgoing, said, anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, program, heard, ended)
        tasks.start_soon(_speak, program, said)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()


async def _listen(
    program: Program,
    heard: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[str], None],
) -> None:
    why = "it ended"
    async with heard:  # whoever waits for an answer learns that none will come
        try:
            async for line in program.lines():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue  # many greet whoever starts them
                await heard.send(SessionMessage(message))
            why = await program.last_words()
        except TooLarge as error:
            why = error.sentence
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        ended(why)


async def _speak(program: Program, said: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with said:
        async for message in said:
            line = message.message.model_dump(by_alias=True, exclude_unset=True, mode="json")
            try:
                await program.say(json.dumps(line).encode())
            except OSError:
                return  # it is gone, which is noticed where it is listened to


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Streams]:
    """To this address and its own origin only: no proxy, and no redirect that leads elsewhere."""
    client = httpx2.AsyncClient(
        # A compressed body cannot be measured before it is unpacked.
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        transport=_Bounded(httpx2.AsyncHTTPTransport(trust_env=False)),
        follow_redirects=False,
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_ANSWER) as found,
    ):
        yield found


class _Bounded(httpx2.AsyncBaseTransport):
    """Answers that are read only so far."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("its answer is packed, which was not asked for")
        streaming = response.headers.get("content-type", "").startswith("text/event-stream")
        if not streaming:  # of a stream each event is bounded instead
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._inner:
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise httpx2.ReadError("its answer is too large")
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()
