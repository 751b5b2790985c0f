"""A page and a JSON endpoint for trying a trained system, on this machine alone.

No file is read for a request, nothing is stored, and nobody from elsewhere gets an answer: only
127.0.0.1 is listened on, and a page of another site can neither read answers (there is no CORS)
nor pass for this one (its host's name is looked at).
"""

import asyncio
import os
import signal
import socket
import sys
import traceback
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bleuprint.config.experiment import Settings
from bleuprint.config.paths import Cell
from bleuprint.runtime.errors import UserError
from bleuprint.serving.api import Asked, answer
from bleuprint.serving.translator import Translator, load_translator

_HOST = "127.0.0.1"
# Bytes of a request's body, and seconds it may take to come.
_MOST_BYTES, _PATIENCE = 64 * 1024, 10.0
# Requests that wait for the one that is being translated; after so many seconds one may try again.
_WAITING, _AGAIN = 8, 5

Answer = TypeVar("Answer")


def serve(settings: Settings, cell: Cell, port: int) -> None:
    """Serve a trained cell until SIGINT or SIGTERM ends the process, with status 0.

    Port 0 is a free one; the address is printed once it answers. Raises UserError if the port
    cannot be had.
    """
    listening = _listen(port)
    translator = load_translator(settings, cell, settings.system(cell.system).decode)
    config = uvicorn.Config(
        application(translator, cell),
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    # as it does itself, but from now on, and when it raises the signal again in the end
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    print(f"http://{_HOST}:{listening.getsockname()[1]}", flush=True)
    server.run([listening])
    sys.stdout.flush()
    # an orderly end would wait for the sentence that is being translated, maybe for minutes
    os._exit(0)


def application(translator: Translator, cell: Cell) -> Starlette:
    """GET / is the page, POST /translate the endpoint (see asked.py); there is nothing else."""
    page, policy = _page(translator, cell)
    line = _Line()

    async def show(_: Request) -> Response:
        return HTMLResponse(page)

    async def translate(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != (
            "application/json"
        ):
            raise HTTPException(415, "the body must be application/json")
        asked = Asked.of(await _body(request), translator.decode.beam)
        return JSONResponse(await line.wait(partial(answer, translator, asked)))

    app = Starlette(
        routes=[Route("/", show), Route("/translate", translate, methods=["POST"])],
        middleware=[Middleware(_Guard, policy=policy)],
        exception_handlers={HTTPException: _told, ClientDisconnect: _gone, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


class _Line:
    """Who waits for the one thread that translates."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._here = 0

    async def wait(self, work: Callable[[], Answer]) -> Answer:
        """What `work` returns, when its turn has come; raises status 503 if too many wait."""
        if self._here > _WAITING:
            message = f"{_WAITING} others wait already; try again in {_AGAIN} seconds"
            raise HTTPException(503, message, {"Retry-After": str(_AGAIN)})
        self._here += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self._here -= 1


class _Guard:
    """Refuses requests by another name than this machine's, and says what a page may do."""

    def __init__(self, app: ASGIApp, policy: str) -> None:
        self._app = app
        self._headers = {
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cache-Control": "no-store",
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        host = Headers(scope=scope).get("host", "").partition(":")[0].lower()
        if host in (_HOST, "localhost"):
            await self._app(scope, receive, send_guarded)
        else:
            refusal = _error(403, f"this server is called {_HOST} or localhost")
            await refusal(scope, receive, send_guarded)


async def _body(request: Request) -> bytes:
    """The body, whatever its header says of its length; raises status 408 or 413."""
    too_long = HTTPException(413, f"the body has more than {_MOST_BYTES:,} bytes")
    if int(request.headers.get("content-length", 0)) > _MOST_BYTES:
        raise too_long
    body = b""
    try:
        async with asyncio.timeout(_PATIENCE):
            async for part in request.stream():
                body += part
                if len(body) > _MOST_BYTES:
                    raise too_long
    except TimeoutError:
        raise HTTPException(408, f"the body did not come in {_PATIENCE:.0f} seconds") from None
    return body


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        raise UserError(f"--port {port}: {os.strerror(error.errno or 0)}") from None


def _page(translator: Translator, cell: Cell) -> tuple[str, str]:
    """The page, and the policy under which a browser runs nothing but what is in it."""
    page = Path(__file__).with_name("serve.html").read_text(encoding="utf-8")
    allowed = {
        tag: b64encode(sha256(_between(page, f"<{tag}>", f"</{tag}>").encode()).digest()).decode()
        for tag in ("script", "style")
    }
    told = {
        "system": cell.system,
        "corpus": cell.corpus,
        "seed": str(cell.seed),
        "source": translator.corpus.source,
        "target": translator.corpus.target,
        "beam": str(translator.decode.beam),
        "n_best": str(min(4, translator.decode.beam)),
    }
    for name, value in told.items():
        page = page.replace(f"{{{{{name}}}}}", escape(value))
    sources = "; ".join(f"{tag}-src 'sha256-{digest}'" for tag, digest in allowed.items())
    return page, (
        f"default-src 'none'; {sources}; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    )


def _between(text: str, begin: str, end: str) -> str:
    return text.partition(begin)[2].partition(end)[0]


def _error(status: int, message: str, headers: Any = None) -> Response:
    return JSONResponse({"error": message}, status, headers)


def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error(error.status_code, error.detail, error.headers)


def _gone(_: Request, __: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


def _failed(_: Request, error: Exception) -> Response:
    """A bug: its traceback goes to who runs the server."""
    traceback.print_exception(error)
    return _error(500, "the server failed; its terminal says why")
