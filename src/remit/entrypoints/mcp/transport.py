"""Transports of the MCP SDK's client: a program's pipes, or HTTP.

The SDK's own transports read messages of any size, and start programs themselves.
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
#: Largest answer in bytes.
LARGEST_ANSWER: Final = 8 << 20

Streams = tuple[Any, Any]


@asynccontextmanager
async def over_pipes(program: Program, ended: Callable[[str], None]) -> AsyncIterator[Streams]:
    """Context manager: messages over a program's pipes, one a line; other lines are ignored.
    `ended` is called with the reason when the output ends."""
    heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with heard, incoming, outgoing, sent, anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, program, heard, ended)
        tasks.start_soon(_speak, program, sent)
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
    async with heard:  # closing it fails the requests that still wait
        try:
            async for line in program.lines():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue  # many programs print a greeting
                await heard.send(SessionMessage(message))
            why = await program.last_words()
        except TooLarge as error:
            why = error.sentence
        except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            pass
        ended(why)


async def _speak(program: Program, sent: MemoryObjectReceiveStream[SessionMessage]) -> None:
    async with sent:
        async for message in sent:
            line = message.message.model_dump(by_alias=True, exclude_unset=True, mode="json")
            try:
                await program.say(json.dumps(line).encode())
            except OSError:
                return  # it is gone, which `_listen` notices


@asynccontextmanager
async def over_http(url: str, headers: Mapping[str, str], seconds: float) -> AsyncIterator[Streams]:
    """Context manager: HTTP to this address alone, without proxies and redirects."""
    client = httpx2.AsyncClient(
        # The size of a compressed body is unknown before it is unpacked.
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        transport=_Bounded(httpx2.AsyncHTTPTransport(trust_env=False)),
        follow_redirects=False,
        trust_env=False,
    )
    async with (
        client,
        streamable_http_client(
            url, http_client=client, max_sse_event_size=LARGEST_ANSWER
        ) as streams,
    ):
        yield streams


class _Bounded(httpx2.AsyncBaseTransport):
    """HTTP transport that limits the size of responses."""

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
