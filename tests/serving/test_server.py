"""`bleuprint serve` as a process of its own, over real connections."""

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psutil
import pytest

import processes
from bleuprint.serving.server import TranslationRequest, answer
from trainings import environment

COMMAND = (sys.executable, "-m", "bleuprint", "serve", "--system=micro", "--corpus=toy")
JSON = {"Content-Type": "application/json"}


class Server:
    """A running server, and requests to it."""

    def __init__(self, process):
        assert process.stdout
        self.process = process
        self.url = process.stdout.readline().rstrip("\n")
        assert self.url, process.communicate()
        self.port = int(self.url.rpartition(":")[2])

    def ask(self, method, path, body=None, headers=JSON):
        """Status, headers (names in lower case) and body of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, named, answer.read()
        finally:
            connection.close()

    def translate(self, **asked):
        status, _, body = self.ask("POST", "/translate", json.dumps(asked))
        return status, json.loads(body)


@contextmanager
def serving(root, *arguments):
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
def server(toy):
    with serving(toy) as started:
        yield started


def test_it_translates_as_the_command_does(server, translator):
    lines = ["be ba", "", "du be\u2028gi"]
    status, found = server.translate(text="\n".join(lines) + "\n", n_best=2)
    assert status == 200
    for line, expected in zip(found["lines"], translator(lines, n_best=2), strict=True):
        assert line["attention"] is None
        assert line["warnings"] == expected.warnings and line["unknown"] == []
        for one, other in zip(line["translations"], expected.translations, strict=True):
            assert one["text"] == other.text
            assert one["score"] == pytest.approx(other.score, abs=2e-6)


def test_a_line_is_translated_as_one_sentence(server, translator):
    _, found = server.translate(text="be gibu. Gu dibe.\r\nbe gibu.\nGu dibe.", attention=True)
    together, *alone = (line["translations"][0]["text"] for line in found["lines"])
    assert together == translator(["be gibu. Gu dibe."])[0].translations[0].text
    assert together != " ".join(alone)
    assert [len(line["attention"]) for line in found["lines"]] == [1, 1, 1]
    assert (
        len(found["lines"][0]["attention"][0]["columns"])
        == len(translator.ids("be gibu. Gu dibe.")) + 1
    )


def test_a_line_far_longer_than_the_training_text_is_noted(server, translator):
    """A training sentence has two to six words, so at most 18 subwords and EOS."""
    _, found = server.translate(text="be ba\n" + "ga " * 60)
    short, long = found["lines"]
    most = translator.usual_length
    assert short["warnings"] == []
    assert long["warnings"][-1] == (
        f"the line is far longer than the training sentences (99.9% have at most {most} tokens). "
        "A line is translated as one sentence: put each sentence on a line of its own"
    )


def test_words_of_no_training_text_are_named(server):
    _, found = server.translate(text="be zzz, ba Zzz zzz.\nbe")
    first, second = found["lines"]
    assert (first["unknown"], second["unknown"]) == (["zzz", "Zzz"], [])


def test_attention_comes_if_asked_for(server):
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


def test_attention_that_is_too_much_is_left_out(translator, monkeypatch):
    lines = translator(["be ba", "be " * 50, "be"])
    first, *_ = (4 * len(p.source) * (len(p.tokens) + 1) for line in lines for p in line.pieces)
    monkeypatch.setattr("bleuprint.serving.server._MAX_WEIGHTS", first)
    request = TranslationRequest("be ba\n" + "be " * 50 + "\nbe", 1, True)
    found = answer(translator, request)
    there = [line["attention"] is not None for line in found["lines"]]
    assert there == [True, False, False]
    assert [line["translations"][0]["text"] for line in found["lines"]] == [
        line.translations[0].text for line in lines
    ]


def test_the_page_is_all_there_is(server):
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


def test_every_answer_says_what_a_page_may_do(server):
    for path in ("/", "/translate", "/nowhere"):
        _, headers, _ = server.ask("GET", path)
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ") and "; script-src 'sha256-" in policy
        assert headers["x-content-type-options"] == "nosniff"
    _, headers, _ = server.ask("GET", "/", headers={"Origin": "http://evil.example"})
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:127.0.0.1", "[::1]", ""]
)
def test_other_names_of_the_host(server, host):
    for path in ("/", "/translate"):
        status, _, body = server.ask("GET", path, headers={"Host": host})
        assert (status, body) == (400, b"Invalid host header")


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonp", "multipart/form-data"])
def test_bodies_of_another_kind(server, kind):
    headers = {} if kind is None else {"Content-Type": kind}
    status, _, body = server.ask("POST", "/translate", '{"text": "be"}', headers)
    assert (status, list(json.loads(body))) == (415, ["error"])


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"{", 400, "not JSON"),
        (b'{"text": "\xff"}', 400, "not JSON"),
        (b"[" * 60_000, 400, "not JSON"),
        (b'{"text": "be", "n_best": ' + b"1" * 5000 + b"}", 400, "not JSON"),
        (b"[]", 422, "body: [] is not a mapping"),
        (b'{"text": "\\ud800"}', 400, "surrogates not allowed"),
        (b'{"text": "be", "n_best": 0}', 422, "n_best: 0 is out of range: at least 1"),
        (b'{"text": "be", "n_best": 3}', 422, "n_best 3 is beyond the beam of 2"),
        (b'{"text": "be", "nbest": 1}', 422, "nbest: unknown key; did you mean 'n_best'?"),
    ],
)
def test_bodies_that_make_no_sense(server, body, status, message):
    status_code, _, answered = server.ask("POST", "/translate", body)
    assert status_code == status
    assert message in json.loads(answered)["error"]


def test_bodies_that_are_too_long(server):
    def text(size):
        return b'{"text": "' + b" " * (size - 12) + b'"}'

    assert server.ask("POST", "/translate", text(65_536))[0] == 200
    for size in (65_537, 20_000_000):
        whole = text(size)
        status, _, body = server.ask("POST", "/translate", whole)
        assert (status, list(json.loads(body))) == (413, ["error"])
        parts = iter([whole[at : at + 8192] for at in range(0, size, 8192)])
        assert server.ask("POST", "/translate", parts)[0] == 413


def test_requests_together_do_not_mix(server):
    texts = [f"{a}e {b}i" for a in "bdfg" for b in "ktlm"][:8]
    alone = [server.translate(text=text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda text: server.translate(text=text), texts))
    assert together == alone
    assert len({json.dumps(found) for _, found in together}) > 4


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_signals_end_it_at_work(toy, tmp_path, number):
    root = shutil.copytree(toy, tmp_path / "slow")
    params = (root / "params.yaml").read_text()
    for old, new in (("beam: 2", "beam: 30"), ("min_len: 0", "min_len: 200")):
        assert params.count(old) == 1
        params = params.replace(old, new)
    (root / "params.yaml").write_text(params.replace("max_len_b: 10", "max_len_b: 250"))
    with serving(root) as server, ThreadPoolExecutor(2) as pool:
        body = json.dumps({"text": ("be ba di gu " * 50 + "\n") * 100})  # minutes of work
        idle_seconds = cpu_seconds(server.process)
        answers = [pool.submit(server.ask, "POST", "/translate", body) for _ in range(2)]
        while cpu_seconds(server.process) < idle_seconds + 0.5:
            assert server.process.poll() is None
            time.sleep(0.05)
        server.process.send_signal(number)
        assert server.process.communicate(timeout=60) == ("", "")
        assert server.process.returncode == 0
        for answer in answers:  # nobody has waited for the translations
            assert answer.exception() is not None or answer.result()[0] == 500


def cpu_seconds(process):
    """The time that a process has computed until now."""
    return psutil.Process(process.pid).cpu_times().user


def test_a_port_that_is_taken(toy, server):
    done = processes.run_text([*COMMAND, f"--port={server.port}"], toy, environment())
    said = f"bleuprint: error: --port {server.port}: Address already in use; choose another, "
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{said}or 0 for a free one\n")


def test_it_listens_on_this_machine_alone(server):
    assert server.url == f"http://127.0.0.1:{server.port}"
    # every address of 127/8 is this machine's, and all but the one are refused
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/"), ("GET", "/translate"), ("OPTIONS", "/translate")]
)
def test_other_methods_are_refused(server, method, path):
    status, headers, body = server.ask(method, path, "{}")
    assert (status, json.loads(body)) == (405, {"error": "Method Not Allowed"})
    assert headers["allow"]
