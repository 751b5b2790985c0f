"""`bleuprint serve` as a process of its own, over real connections."""

import asyncio
import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import processes
from bleuprint.config.experiment import load
from bleuprint.config.paths import Cell
from bleuprint.serving import server as server_module
from bleuprint.serving.lost_text import TrainingLengths
from bleuprint.serving.server import TranslationRequest, answer
from bleuprint.serving.translator import Translator, load_translator
from trainings import environment

COMMAND = (sys.executable, "-m", "bleuprint.cli.main", "serve", "--system=micro", "--corpus=toy")
JSON = {"Content-Type": "application/json"}


class Server:
    """A running server, and requests to it."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout
        self.process = process
        self.url = process.stdout.readline().rstrip("\n")
        self.port = int(self.url.rpartition(":")[2])

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] = JSON
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (names in lower case) and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()
        finally:
            connection.close()

    def translate(self, **asked: Any) -> tuple[int, Any]:
        status, _, body = self.ask("POST", "/translate", json.dumps(asked))
        return status, json.loads(body)

    def raw(self, request: bytes) -> bytes:
        """All that comes back for these bytes, until the server hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(request)
            return b"".join(iter(lambda: connection.recv(4096), b""))


@contextmanager
def serving(root: Path, *arguments: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [*COMMAND, *(arguments or ("--port=0",))],
        cwd=root,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Server(process)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def server(toy: Path) -> Iterator[Server]:
    with serving(toy) as started:
        yield started


def translator_in(toy: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    monkeypatch.chdir(toy)
    settings = load()
    return load_translator(settings, Cell("micro", "toy", 1), settings.system("micro").decode)


def test_it_translates_as_the_command_does(
    server: Server, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy)
    settings = load()
    translator = load_translator(settings, Cell("micro", "toy", 1), settings.system("micro").decode)
    usual = TrainingLengths.of(translator.corpus)
    lines = ["be ba", "", "du be\u2028gi"]
    status, found = server.translate(text="\n".join(lines) + "\n", n_best=2)
    assert status == 200
    for line, expected in zip(found["lines"], translator(lines, best=2), strict=True):
        assert line["attention"] is None
        assert line["warnings"] == list(usual.warnings(expected))
        for one, other in zip(line["translations"], expected.best, strict=True):
            assert one["text"] == other.text
            assert one["score"] == pytest.approx(other.score, abs=2e-6)


def test_a_line_of_several_sentences_is_translated_by_sentence(server: Server) -> None:
    _, found = server.translate(text="be gibu. Gu dibe.\nbe gibu. \nGu dibe.", attention=True)
    together, *alone = (line["translations"][0]["text"] for line in found["lines"])
    assert together == " ".join(alone)
    assert [len(line["attention"]) for line in found["lines"]] == [2, 1, 1]


def test_attention_comes_if_asked_for(server: Server) -> None:
    _, found = server.translate(text="be ba\n\n" + "ga " * 300, attention=True)
    short, empty, long = found["lines"]
    (attention,) = short["attention"]
    assert (attention["columns"][-1], attention["rows"][-1]) == ("</s>", "</s>")
    (layer,) = attention["weights"]
    assert len(layer) == 4
    for head in layer:
        assert [len(row) for row in head] == [len(attention["columns"])] * len(attention["rows"])
        assert [sum(row) for row in head] == pytest.approx([1] * len(head), abs=1e-3)
    assert empty["attention"] == []
    assert "tokens too long for the model" in long["warnings"][0] and len(long["attention"]) > 1
    assert empty["warnings"] == []


def test_attention_that_is_too_much_is_left_out(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = translator_in(toy, monkeypatch)
    lines = translator(["be ba", "be " * 50, "be"])
    first, *_ = (4 * len(p.source) * (len(p.tokens) + 1) for line in lines for p in line.pieces)
    monkeypatch.setattr("bleuprint.serving.server._WEIGHTS", first)
    request = TranslationRequest("be ba\n" + "be " * 50 + "\nbe", 1, True)
    found = answer(translator, TrainingLengths.of(translator.corpus), request)
    there = [line["attention"] is not None for line in found["lines"]]
    assert there == [True, False, False]
    assert [line["translations"][0]["text"] for line in found["lines"]] == [
        line.best[0].text for line in lines
    ]


def test_the_page_is_all_there_is(server: Server) -> None:
    status, headers, page = server.ask("GET", "/")
    assert status == 200 and headers["content-type"] == "text/html; charset=utf-8"
    assert b"<textarea" in page and b"{{" not in page
    assert server.ask("GET", "/", headers={"Host": f"localhost:{server.port}"})[0] == 200
    for path in (
        "/serve.html.j2",
        "/translate/",
        "/docs",
        "/../params.yaml",
        "/%2e%2e/params.yaml",
        "//etc/passwd",
    ):
        status, headers, body = server.ask("GET", path)
        assert (status, json.loads(body)) == (404, {"error": "Not Found"}), path


def test_every_answer_says_what_a_page_may_do(server: Server) -> None:
    for path in ("/", "/translate", "/nowhere"):
        _, headers, _ = server.ask("GET", path)
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'sha")
        assert headers["x-content-type-options"] == "nosniff"
    _, headers, _ = server.ask("GET", "/", headers={"Origin": "http://evil.example"})
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/", 405), ("GET", "/translate", 405), ("OPTIONS", "/translate", 405)],
)
def test_other_methods(server: Server, method: str, path: str, status: int) -> None:
    found, headers, body = server.ask(method, path, "{}")
    assert (found, json.loads(body)) == (status, {"error": "Method Not Allowed"})
    assert headers["allow"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:127.0.0.1", "[::1]", ""]
)
def test_other_names_of_the_host(server: Server, host: str) -> None:
    for path in ("/", "/translate"):
        status, _, body = server.ask("GET", path, headers={"Host": host})
        assert (status, body) == (400, b"Invalid host header")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonp", "multipart/form-data"])
def test_bodies_of_another_kind(server: Server, kind: str | None) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    status, _, body = server.ask("POST", "/translate", '{"text": "be"}', headers)
    assert (status, list(json.loads(body))) == (415, ["error"])


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b'{"text": "\xff"}', 400, "not UTF-8"),
        (b"[" * 60_000, 400, "not JSON"),
        (b'{"text": "be", "n_best": ' + b"1" * 5000 + b"}", 400, "not JSON"),
        (b"[]", 422, "body: [] is not a mapping"),
        (b"{}", 422, "body: the key 'text' is missing"),
        (b'{"text": 1}', 422, "body: text: 1 is not text"),
        (b'{"text": "\\ud800"}', 422, "half of a surrogate pair"),
        (b'{"text": "be", "n_best": 0}', 422, "n_best: 0 is out of range: at least 1"),
        (b'{"text": "be", "n_best": 3}', 422, "n_best 3 is beyond the beam of 2"),
        (b'{"text": "be", "n_best": true}', 422, "n_best: true is not a whole number"),
        (b'{"text": "be", "n_best": 1.5}', 422, "n_best: 1.5 is not a whole number"),
        (b'{"text": "be", "attention": 1}', 422, "attention: 1 is not true or false"),
        (b'{"text": "be", "nbest": 1}', 422, "nbest: unknown key; did you mean 'n_best'?"),
    ],
)
def test_bodies_that_make_no_sense(server: Server, body: bytes, status: int, message: str) -> None:
    status_code, _, answered = server.ask("POST", "/translate", body)
    assert status_code == status
    assert message in json.loads(answered)["error"]


def test_bodies_that_are_too_long(server: Server) -> None:
    def text(size: int) -> bytes:
        return b'{"text": "' + b" " * (size - 12) + b'"}'

    assert server.ask("POST", "/translate", text(65_536))[0] == 200
    for size in (65_537, 20_000_000):
        whole = text(size)
        status, _, body = server.ask("POST", "/translate", whole)
        assert (status, list(json.loads(body))) == (413, ["error"])
        parts = iter([whole[at : at + 8192] for at in range(0, size, 8192)])
        assert server.ask("POST", "/translate", parts)[0] == 413


def head(length: int) -> bytes:
    return (
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
    )


def test_lengths_that_lie(server: Server) -> None:
    body = b'{"text": "be"}'
    assert server.raw(head(len(body)) + body).startswith(b"HTTP/1.1 200")
    assert server.raw(head(len(body) - 1) + body).startswith(b"HTTP/1.1 400")
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head(len(body) + 1) + body)
    assert server.raw(b"\x00\x01 nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    assert server.translate(text="be")[0] == 200


@contextmanager
def limited(monkeypatch: pytest.MonkeyPatch, seconds: float) -> Iterator[tuple[str, int]]:
    """The address of a server that echoes bodies and waits so long for a request."""

    async def echo(request: Request) -> PlainTextResponse:
        body = await request.body()
        await asyncio.sleep(2 * seconds if body == b"slow" else 0)
        return PlainTextResponse(body)

    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", seconds)
    app = Starlette(routes=[Route("/", echo, methods=["POST"])])
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=server_module.TimedProtocol, lifespan="off", log_config=None)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([listening],))
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        running.should_exit = True
        thread.join()


_POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"


@pytest.mark.parametrize("part", [b"", b"POST", _POST, _POST + b"\r\n", _POST + b"\r\nslo"])
def test_a_request_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    """Also where bytes go on coming."""
    with limited(monkeypatch, 0.5) as address, socket.create_connection(address, 30) as client:
        client.sendall(part)
        if part.endswith(_POST):
            with suppress(OSError):  # the server hangs up
                while True:
                    client.sendall(b"X: y\r\n")
                    time.sleep(0.1)
        with suppress(ConnectionResetError):
            assert client.recv(100) == b""


def test_a_whole_request_is_answered_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is the next one over the same connection, sent in two parts."""
    with limited(monkeypatch, 1.0) as address, socket.create_connection(address, 30) as client:
        for body, parts in ((b"slow", 1), (b"fast", 2), (b"slow", 2)):
            request = _POST + b"\r\n" + body
            for part in (request[:40], request[40:]) if parts == 2 else (request,):
                client.sendall(part)
                time.sleep(0.1)
            found = b""
            while not found.endswith(body):
                more = client.recv(1000)
                assert more, found
                found += more
            assert found.startswith(b"HTTP/1.1 200 OK")


def test_requests_together_do_not_mix(server: Server) -> None:
    texts = [f"{a}e {b}i" for a in "bdfg" for b in "ktlm"][:8]
    alone = [server.translate(text=text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: server.translate(text=text), texts))
    assert together == alone
    assert len({json.dumps(found) for _, found in together}) > 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it(toy: Path, number: signal.Signals) -> None:
    with serving(toy) as server:
        assert ended(server, number) == (0, "", "")


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_signals_end_it_at_work(toy: Path, tmp_path: Path, number: signal.Signals) -> None:
    root = shutil.copytree(toy, tmp_path / "slow")
    params = (root / "params.yaml").read_text()
    for old, new in (("beam: 2", "beam: 30"), ("min_length: 0", "min_length: 200")):
        assert params.count(old) == 1
        params = params.replace(old, new)
    (root / "params.yaml").write_text(params.replace("max_len_b: 10", "max_len_b: 250"))
    with serving(root) as server, ThreadPoolExecutor(2) as pool:
        body = json.dumps({"text": ("be ba di gu " * 50 + "\n") * 100})  # minutes of work
        for _ in range(2):
            pool.submit(server.ask, "POST", "/translate", body)
        time.sleep(0.5)
        assert ended(server, number) == (0, "", "")


def ended(server: Server, number: signal.Signals) -> tuple[int, str, str]:
    """Its exit status, and the rest of its stdout and stderr, after a signal."""
    server.process.send_signal(number)
    output, said = server.process.communicate(timeout=10)
    return server.process.returncode, output, said


def test_a_port_that_is_taken(toy: Path, server: Server) -> None:
    done = processes.run_text([*COMMAND, f"--port={server.port}"], toy, environment())
    said = f"bleuprint: error: --port {server.port}: Address already in use; choose another, "
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{said}or 0 for a free one\n")


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_no_port_at_all(toy: Path, port: str) -> None:
    done = processes.run_text([*COMMAND, f"--port={port}"], toy, environment())
    assert done.returncode == 2
    assert f"'{port}' is not a whole number from 0 to 65535" in done.stderr


def test_it_listens_on_this_machine_alone(server: Server) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}"
    # every address of 127/8 is this machine's, and all but the one are refused
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)
