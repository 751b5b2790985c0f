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
from collections.abc import Sequence
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
from bleuprint.serving.translator import Translated, Translator, load_translator

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
    """Run a web server on this machine that translates with a trained model.

    It offers a page for a browser and an address for programs, and prints its URL when it is ready.
    It runs until SIGINT (Ctrl-C) or SIGTERM arrives, which ends the process with status 0.

    Args:
        run: The system, corpus and seed of the model.
        decode: The settings of the search.
        port: The port to listen on; 0 chooses a free port.
        languages: The source and the target language, such as ("de", "en").

    Raises:
        UserError: The port is in use or not permitted.
    """
    # Loading the model takes seconds, so an error about the port should come before.
    listening_socket = _open_port(port)
    translator = load_translator(run, decode, languages)
    page = _render_page(translator, run)
    server = _create_server(application(translator, page.html), page.content_security_policy)
    # uvicorn handles signals only while its loop runs, and raises them again at the end, which
    # would end the process with another status. Its handler is therefore installed here, too.
    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, server.handle_exit)
    actual_port = listening_socket.getsockname()[1]
    print(f"http://{_HOST}:{actual_port}", flush=True)
    server.run([listening_socket])
    sys.stdout.flush()
    # `sys.exit` would wait for the thread that translates, which may take minutes.
    os._exit(0)


def _open_port(port: int) -> socket.socket:
    """Return a socket that listens to a port of this machine, only for programs on this machine.

    Args:
        port: The port; 0 chooses a free port.

    Raises:
        UserError: The port is in use or not permitted.
    """
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UserError(
            f"--port {port}: {reason}. Choose another port, or 0 for a free one"
        ) from None


def _create_server(app: Starlette, content_security_policy: str) -> uvicorn.Server:
    """Create the web server for an application; uvicorn is a library for such servers.

    Args:
        app: The application, which says how requests are answered.
        content_security_policy: A header that tells browsers which scripts and styles they may use.
    """
    config = uvicorn.Config(
        app,
        headers=[("Content-Security-Policy", content_security_policy), *_HEADERS.items()],
        http="h11",
        ws="none",  # No WebSockets.
        lifespan="off",  # The application has no start-up or shutdown events.
        log_config=None,
        log_level="critical",
        server_header=False,
        timeout_graceful_shutdown=2,  # Seconds to finish open requests after a signal.
    )
    return uvicorn.Server(config)


def application(translator: Translator, page: str) -> Starlette:
    """Create the web application, which defines how requests to the server are answered.

    `GET /` returns a page on which a user can translate. `POST /translate` translates the text in a
    JSON object, and returns the translations as JSON.

    Args:
        translator: The translator, with a loaded model.
        page: The page as HTML.
    """
    # The model translates one request at a time, in this single thread. Meanwhile the server can
    # accept other requests.
    translation_thread = ThreadPoolExecutor(1)

    async def show_page(_: Request) -> Response:
        """Answer GET / with the page."""
        return HTMLResponse(page)

    async def translate(request: Request) -> Response:
        """Answer POST /translate with the translations of the text in its JSON body.

        Raises:
            HTTPException: The body is not JSON or too large, or a value in it is not valid.
        """
        content_type = request.headers.get("content-type", "").partition(";")[0]
        if content_type != "application/json":
            raise HTTPException(415, "the body must be application/json")
        body = await _read_body(request)
        parsed_request = TranslationRequest.parse(body, translator.decode.beam)
        loop = asyncio.get_running_loop()
        try:
            # In the thread, the result is `answer(translator, parsed_request)`.
            content = await loop.run_in_executor(
                translation_thread, answer, translator, parsed_request
            )
        except UserError as error:
            # A sentence contains something that the model cannot read.
            raise HTTPException(422, str(error)) from None
        return JSONResponse(content)

    # A request must name this machine as its host. Otherwise it may come from a malicious page,
    # whose host name was made to resolve to this machine (DNS rebinding).
    app = Starlette(
        routes=[Route("/", show_page), Route("/translate", translate, methods=["POST"])],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[_HOST, "localhost"])],
        exception_handlers={HTTPException: _answer_refusal, Exception: _answer_failure},
    )
    # Otherwise Starlette would redirect /translate/ to /translate, instead of the status 404.
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
        """Create a request from the JSON in the body of an HTTP request, and check it.

        Args:
            body: The JSON object. Its keys are the fields of this class, and only the text is
                required.
            beam: The size of the beam. A search finds at most this many translations, so it limits
                the field `n_best`.

        Raises:
            HTTPException: The body is not JSON (status 400), or a key or value is invalid (422).
        """
        try:
            content = json.loads(body)
            # JSON may contain one half of a surrogate pair, such as "\ud800", which UTF-8 cannot
            # encode. Encoding it here raises a ValueError, instead of later in the translator.
            json.dumps(content, ensure_ascii=False).encode()
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON: {error}") from None
        try:
            request = validate_document(cls, content, Path("body"))
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        if request.n_best > beam:
            raise HTTPException(422, f"n_best {request.n_best} is above decode.beam ({beam})")
        return request


def answer(translator: Translator, request: TranslationRequest) -> dict[str, Any]:
    """Translate the text of a request, and return the content of the answer.

    Each line of the text is translated as one sentence. The answer is `{"lines": [LINE, ...]}`,
    where LINE is an object with these keys:

    - `translations`: the translations, best first, each with `text` and `score`;
    - `attention`: the attention maps of the best translation, a list with one map; more if the line
      was too long for the model and was translated in pieces. It is null if no maps were requested,
      or if they would make the answer too large;
    - `unknown`: the words that the training text does not contain;
    - `warnings`: messages about text that the translation may have lost.

    Args:
        translator: The translator, with a loaded model.
        request: The text, the number of translations, and whether to return attention maps.
    """
    lines = []
    for line in request.text.removesuffix("\n").split("\n"):
        lines.append(line.removesuffix("\r"))
    # How many attention weights the answer may still contain. It becomes negative at the first line
    # whose maps would make the answer too large; this line and all later ones get no maps.
    weights_left = _MAX_WEIGHTS
    answers = []
    for translated in translator(lines, request.n_best):
        maps = None
        if request.attention and weights_left >= 0:
            # `cross` is the attention of translated tokens to source tokens.
            cross_maps = [by_kind["cross"] for by_kind in translator.attention(translated)]
            weights_left -= sum(attention_map.weights.size for attention_map in cross_maps)
            if weights_left >= 0:
                maps = cross_maps
        answers.append(_describe_line(translator, translated, maps))
    return {"lines": answers}


def _describe_line(
    translator: Translator, translated: Translated, maps: Sequence[AttentionMap] | None
) -> dict[str, Any]:
    """Return the part of the JSON answer for one line: translations, attention maps, warnings.

    Args:
        translator: The translator.
        translated: The line with its translations.
        maps: The attention maps of the best translation; None if the answer contains none.
    """
    translations = []
    for translation in translated.translations:
        score = round(translation.score, 6)
        translations.append({"text": translation.text, "score": score})
    maps_as_json = None
    if maps is not None:
        maps_as_json = [_map_as_json(attention_map) for attention_map in maps]
    unknown_words = translator.known_words.unknown_words(translated.words)
    warnings = translated.warnings
    if translator.is_far_longer(translated):
        warnings.append(f"the line is {translator.long_line_note()}")
    return {
        "translations": translations,
        "attention": maps_as_json,
        # Each word once, in the order of the sentence.
        "unknown": list(dict.fromkeys(unknown_words)),
        "warnings": warnings,
    }


def _map_as_json(attention_map: AttentionMap) -> dict[str, Any]:
    """Return an attention map with its weights as lists of rounded numbers."""
    weights = attention_map.weights.astype(float).round(4).tolist()
    return {**vars(attention_map), "weights": weights}


async def _read_body(request: Request) -> bytes:
    """Read the body of a request, and refuse a body that is too large.

    The header `Content-Length` may be wrong or missing, so the bytes themselves are counted.

    Raises:
        HTTPException: The body is too large (status 413).
    """
    body = b""
    # If the client disconnects, nobody waits for an answer, and the error can be ignored.
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
    """Render the page for translating with a model, and the security header for it.

    By the header Content-Security-Policy, the browser runs only the script and uses only the style
    whose hashes are in the header. So text that a user types cannot become code on the page.

    Args:
        translator: The translator, with a loaded model.
        run: The system, corpus and seed of the model.
    """
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
        # The text between <script> and </script>.
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
    return JSONResponse({"error": "the server failed. Its terminal shows the traceback"}, 500)
