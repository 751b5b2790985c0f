"""A page and a JSON endpoint for trying a trained system, reachable from this machine only.

A request reads no file and nothing is stored. The server listens on 127.0.0.1 only; a page of
another site cannot read its answers (there is no CORS) and is refused by its Host header.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import traceback
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from bleuprint.config.paths import Run
from bleuprint.config.system import Decode
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import Count, validate_document
from bleuprint.serving.attention_html import attention_environment
from bleuprint.serving.translator import Translator, load_translator

_HOST = "127.0.0.1"
# The longest body of a request.
_MOST_BYTES = 64 * 1024
# Attention weights of one answer, at most: some megabytes.
_WEIGHTS = 300_000
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve(run: Run, decode: Decode, port: int, languages: tuple[str, str]) -> None:
    """Serve a trained run until SIGINT or SIGTERM ends the process, with status 0.

    Args:
        run: The training whose model translates.
        decode: How it searches.
        port: Where it listens; 0 is any free port. The address is printed once it answers.
        languages: The source and the target language.

    Raises:
        UserError: The port is taken or not permitted.
    """
    try:
        listening = socket.create_server((_HOST, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise UserError(f"--port {port}: {why}; choose another, or 0 for a free one") from None
    translator = load_translator(run, decode, languages)
    page, policy = _page(translator, run)
    config = uvicorn.Config(
        application(translator, page),
        headers=[("Content-Security-Policy", policy), *_HEADERS.items()],
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    # uvicorn's own handler, also before its loop starts and when it raises the signal again
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    print(f"http://{_HOST}:{listening.getsockname()[1]}", flush=True)
    server.run([listening])
    sys.stdout.flush()
    # without waiting for the sentence that is being translated, which may take minutes
    os._exit(0)


def application(translator: Translator, page: str) -> Starlette:
    """GET / is the page, POST /translate the endpoint (see `answer`); there is nothing else."""
    thread = ThreadPoolExecutor(1)  # one request at a time

    async def show(_: Request) -> Response:
        return HTMLResponse(page)

    async def translate(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise HTTPException(415, "the body must be application/json")
        parsed = TranslationRequest.parse(await _body(request), translator.decode.beam)
        loop = asyncio.get_running_loop()
        try:
            return JSONResponse(await loop.run_in_executor(thread, answer, translator, parsed))
        except UserError as error:  # a sentence that the model cannot read
            raise HTTPException(422, str(error)) from None

    app = Starlette(
        routes=[Route("/", show), Route("/translate", translate, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[_HOST, "localhost"])],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    app.router.redirect_slashes = False
    return app


@dataclass(frozen=True)
class TranslationRequest:
    """Text to translate line by line, how many translations of each, and whether with attention."""

    text: str
    n_best: Count = 1
    attention: bool = False

    @classmethod
    def parse(cls, body: bytes, beam: int) -> Self:
        """Read a JSON object of these fields; only the text is required.

        Raises HTTPException: status 400 if it is not JSON, 422 if a key or value is invalid.
        """
        try:
            content = json.loads(body)
            json.dumps(content, ensure_ascii=False).encode()  # half of a surrogate pair is refused
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON: {error}") from None
        try:
            request = validate_document(cls, content, Path("body"))
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        if request.n_best > beam:
            raise HTTPException(422, f"n_best {request.n_best} is beyond the beam of {beam}")
        return request


def answer(translator: Translator, request: TranslationRequest) -> dict[str, Any]:
    """{"lines": [{"translations": [{"text", "score"}, ...], "attention", "unknown", ...}, ...]}.

    For each line of the text, which is one sentence: its translations, best first; the attention
    maps of the best one, several for a line beyond the model's length (null if not requested, or if
    the weights of the lines so far are too many); its words that are `unknown`, since they were not
    in the training text; and `warnings` of text that was probably lost.
    """
    lines = []
    for line in request.text.removesuffix("\n").split("\n"):
        lines.append(line.removesuffix("\r"))
    room = _WEIGHTS
    answers = []
    for translated in translator(lines, request.n_best):
        maps: list[dict[str, Any]] | None = None
        if request.attention and room >= 0:
            maps = []
            for of_piece in translator.attention(translated):
                attention = of_piece["cross"]
                weights = attention.weights.astype(float).round(4).tolist()
                maps.append({**vars(attention), "weights": weights})
                room -= attention.weights.size
            if room < 0:
                maps = None
        translations = []
        for translation in translated.translations:
            score = round(translation.score, 6)
            translations.append({"text": translation.text, "score": score})
        warnings = translated.warnings
        if translator.is_far_longer(translated):
            warnings.append(f"the line is {translator.long_line_note()}")
        answers.append(
            {
                "translations": translations,
                "attention": maps,
                "unknown": list(
                    dict.fromkeys(translator.known_words.unknown_words(translated.words))
                ),
                "warnings": warnings,
            }
        )
    return {"lines": answers}


async def _body(request: Request) -> bytes:
    """The body, whatever length its header gives; raises status 413."""
    body = b""
    with suppress(ClientDisconnect):
        async for part in request.stream():
            body += part
            if len(body) > _MOST_BYTES:
                raise HTTPException(413, f"the body has more than {_MOST_BYTES:,} bytes")
    return body


def _page(translator: Translator, run: Run) -> tuple[str, str]:
    """The page, and the policy that lets a browser run only the script and style in it."""
    beam = translator.decode.beam
    template = attention_environment().get_template("serve.html.j2")
    page = template.render(
        run=run,
        known=translator.known_words,
        source=translator.source,
        target=translator.target,
        beam=beam,
        n_best=min(4, beam),
    )
    policy = ["default-src 'none'", "connect-src 'self'", "img-src data:", "base-uri 'none'"]
    policy += ["form-action 'none'", "frame-ancestors 'none'"]
    for tag in ("script", "style"):  # allowed by the hash of their content
        content = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        policy.append(f"{tag}-src 'sha256-{digest}'")
    return page, "; ".join(policy)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _failed(_: Request, error: Exception) -> Response:
    """A bug: its traceback goes to the server's stderr."""
    traceback.print_exception(error)
    return JSONResponse({"error": "the server failed; the traceback is in its terminal"}, 500)
