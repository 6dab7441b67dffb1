"""A reverse proxy for one web server that obeys /readyz, as load balancers do."""

import asyncio
import http.client
from contextlib import closing, suppress
from threading import Thread
from typing import Self
from urllib.parse import urlsplit

from tests.clients.live import HOST, free_port

# Seconds between two health checks, and the longest time that one may take.
CHECK_INTERVAL, CHECK_TIMEOUT = 0.2, 2.0
# Failed checks in a row after which the web server is taken out of service: the default of HAProxy.
MAX_FAILED_CHECKS = 3
CHUNK_BYTES = 65_536
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ReadinessProxy:
    """Forward connections to the web server while /readyz responds with 200.

    After MAX_FAILED_CHECKS failed checks in a row, open connections are closed and new ones get 503 until a
    check succeeds again.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = str(parts.hostname), parts.port or 80
        self.port, self.is_ready, self.outages = free_port(), True, 0
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._serve(),), daemon=True)

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def __enter__(self) -> Self:
        self._stopping, self._started = asyncio.Event(), asyncio.Event()
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._started.wait(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._forward, HOST, self.port)
        # A reference, because the event loop alone does not keep the task alive.
        self._checks = asyncio.ensure_future(self._check_readiness())
        self._started.set()
        await self._stopping.wait()
        server.close()
        self._close_connections()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _check_readiness(self) -> None:
        failed = 0
        while True:
            failed = 0 if await asyncio.to_thread(self._is_web_ready) else failed + 1
            self.is_ready = failed < MAX_FAILED_CHECKS
            if failed == MAX_FAILED_CHECKS:
                self.outages += 1
                self._close_connections()
            await asyncio.sleep(CHECK_INTERVAL)

    def _is_web_ready(self) -> bool:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=CHECK_TIMEOUT)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        return False

    def _close_connections(self) -> None:
        for writer in tuple(self._open):
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if not self.is_ready:
                writer.write(UNAVAILABLE)
                await writer.drain()
                return
            web_reader, web_writer = await asyncio.open_connection(self._host, self._port)
            await asyncio.gather(copy(reader, web_writer), copy(web_reader, writer))
        except OSError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
    writer.close()
