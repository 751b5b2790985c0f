"""Serves a page and a JSON endpoint for trying a trained system, for this machine only.

Requests read no files, and nothing is stored. The server listens on 127.0.0.1 only. A page of
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
from typing import Any, NamedTuple, Self

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
from bleuprint.decoding.attention_maps import AttentionMap
from bleuprint.runtime.errors import UserError
from bleuprint.runtime.schema import Count, validate_document
from bleuprint.serving.attention_html import attention_environment
from bleuprint.serving.translator import Translator, load_translator

_HOST = "127.0.0.1"
# The body of a request may have so many bytes.
_MAX_BODY_BYTES = 64 * 1024
# An answer contains so many attention weights at most, some megabytes of JSON.
_MAX_WEIGHTS = 300_000
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def serve(run: Run, decode: Decode, port: int, languages: tuple[str, str]) -> None:
    """Serve a trained run until SIGINT or SIGTERM ends the process, with status 0.

    Args:
        run: The run whose model translates.
        decode: The settings of the search.
        port: The port to listen on; 0 is any free port. The address is printed once it answers.
        languages: The source and the target language.

    Raises:
        UserError: The port is in use or not permitted.
    """
    try:
        # Before the model is loaded, which takes seconds.
        listening_socket = socket.create_server((_HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UserError(f"--port {port}: {reason}; choose another, or 0 for a free one") from None
    translator = load_translator(run, decode, languages)
    page = _render_page(translator, run)
    config = uvicorn.Config(
        application(translator, page.html),
        headers=[("Content-Security-Policy", page.content_security_policy), *_HEADERS.items()],
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    # uvicorn installs this handler only while its loop runs, and raises the signal again at the
    # end. Here it also handles signals before and after.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, server.handle_exit)
    actual_port = listening_socket.getsockname()[1]
    print(f"http://{_HOST}:{actual_port}", flush=True)
    server.run([listening_socket])
    sys.stdout.flush()
    # End at once, without waiting for a sentence that is being translated, which may take minutes.
    os._exit(0)


def application(translator: Translator, page: str) -> Starlette:
    """Create the web application: GET / returns the page, POST /translate the JSON of `answer`.

    Args:
        translator: Translates the text of requests.
        page: The page as HTML.
    """
    # One thread, so that one request is translated at a time.
    translation_thread = ThreadPoolExecutor(1)

    async def show_page(_: Request) -> Response:
        """Answer GET / with the page."""
        return HTMLResponse(page)

    async def translate(request: Request) -> Response:
        """Answer POST /translate with the translations of the text in its JSON body."""
        content_type = request.headers.get("content-type", "").partition(";")[0]
        if content_type != "application/json":
            raise HTTPException(415, "the body must be application/json")
        body = await _read_body(request)
        parsed_request = TranslationRequest.parse(body, translator.decode.beam)
        loop = asyncio.get_running_loop()
        try:
            content = await loop.run_in_executor(
                translation_thread, answer, translator, parsed_request
            )
        except UserError as error:  # a sentence contains what the model cannot read
            raise HTTPException(422, str(error)) from None
        return JSONResponse(content)

    app = Starlette(
        routes=[Route("/", show_page), Route("/translate", translate, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[_HOST, "localhost"])],
        exception_handlers={HTTPException: _answer_refusal, Exception: _answer_failure},
    )
    # Other paths, /translate/ included, are not found.
    app.router.redirect_slashes = False
    return app


@dataclass(frozen=True)
class TranslationRequest:
    """The body of a request to translate.

    Attributes:
        text: The text to translate, line by line.
        n_best: The number of translations of each line.
        attention: Whether the answer contains attention maps.
    """

    text: str
    n_best: Count = 1
    attention: bool = False

    @classmethod
    def parse(cls, body: bytes, beam: int) -> Self:
        """Read a JSON object with these fields, of which only the text is required.

        Args:
            body: The body of the request.
            beam: The size of the beam, which limits `n_best`.

        Raises:
            HTTPException: The body is not JSON (status 400), or a key or value is invalid (422).
        """
        try:
            content = json.loads(body)
            # JSON may contain one half of a surrogate pair, which UTF-8 cannot encode.
            json.dumps(content, ensure_ascii=False).encode()
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
    """Translate the text of a request, and return the JSON of the answer.

    It is `{"lines": [LINE, ...]}`, with an object for each line of the text, which is one sentence:

    - `translations`: its translations, best first, each with `text` and `score`;
    - `attention`: the attention maps of the best one, one for each piece of a line that is too long
      for the model; null if they were not requested or are too large for the answer;
    - `unknown`: its words that are not in the training text;
    - `warnings`: warnings of text that the translation may have lost.
    """
    lines = []
    for line in request.text.removesuffix("\n").split("\n"):
        lines.append(line.removesuffix("\r"))
    weights_left = _MAX_WEIGHTS
    answers = []
    for translated in translator(lines, request.n_best):
        maps = None
        if request.attention and weights_left >= 0:
            all_maps = [by_kind["cross"] for by_kind in translator.attention(translated)]
            weights_left -= sum(attention_map.weights.size for attention_map in all_maps)
            if weights_left >= 0:
                maps = [_map_as_json(attention_map) for attention_map in all_maps]
        unknown_words = translator.known_words.unknown_words(translated.words)
        warnings = translated.warnings
        if translator.is_far_longer(translated):
            warnings.append(f"the line is {translator.long_line_note()}")
        translations = []
        for translation in translated.translations:
            score = round(translation.score, 6)
            translations.append({"text": translation.text, "score": score})
        answers.append(
            {
                "translations": translations,
                "attention": maps,
                "unknown": list(dict.fromkeys(unknown_words)),
                "warnings": warnings,
            }
        )
    return {"lines": answers}


def _map_as_json(attention_map: AttentionMap) -> dict[str, Any]:
    """Return an attention map with its weights as lists of rounded numbers."""
    weights = attention_map.weights.astype(float).round(4).tolist()
    return {**vars(attention_map), "weights": weights}


async def _read_body(request: Request) -> bytes:
    """Return the body of a request, whatever length its header states.

    Raises:
        HTTPException: The body is too large (status 413).
    """
    body = b""
    with suppress(ClientDisconnect):
        async for part in request.stream():
            body += part
            if len(body) > _MAX_BODY_BYTES:
                raise HTTPException(413, f"the body has more than {_MAX_BODY_BYTES:,} bytes")
    return body


class _Page(NamedTuple):
    """The page for trying a system.

    Attributes:
        html: The page.
        content_security_policy: The header that lets a browser run only the script and style in it.
    """

    html: str
    content_security_policy: str


def _render_page(translator: Translator, run: Run) -> _Page:
    """Render the page of a run, and allow its script and style by the hashes of their content."""
    beam = translator.decode.beam
    template = attention_environment().get_template("serve.html.j2")
    html = template.render(
        run=run,
        known=translator.known_words,
        source=translator.source,
        target=translator.target,
        beam=beam,
        n_best=min(4, beam),
    )
    directives = [
        "default-src 'none'",
        "connect-src 'self'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
    for tag in ("script", "style"):
        content = html.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        digest = b64encode(sha256(content.encode()).digest()).decode()
        directives.append(f"{tag}-src 'sha256-{digest}'")
    return _Page(html, "; ".join(directives))


def _answer_refusal(_: Request, error: Exception) -> Response:
    """Answer a request that is refused with its error as JSON."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _answer_failure(_: Request, error: Exception) -> Response:
    """Answer a request that failed by a bug, and print the traceback in the server's terminal."""
    traceback.print_exception(error)
    return JSONResponse({"error": "the server failed; the traceback is in its terminal"}, 500)
