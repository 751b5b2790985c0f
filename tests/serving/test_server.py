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
from dataclasses import dataclass

import pytest

import processes
from bleuprint.serving.server import TranslationRequest, answer
from trainings import environment

COMMAND = (sys.executable, "-m", "bleuprint", "serve", "--system=micro", "--corpus=toy")
MAX_BODY_BYTES = 65_536
JSON_HEADERS = {"Content-Type": "application/json"}


@dataclass
class Response:
    """An HTTP response.

    Attributes:
        status: The status code.
        headers: The headers, with names in lower case.
        body: The content.
    """

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self):
        """Parse the body as JSON."""
        return json.loads(self.body)


class Server:
    """A running `bleuprint serve`, and requests to it.

    Attributes:
        process: The server.
        url: The address that it prints.
        port: The port in this address.
    """

    def __init__(self, process):
        """Wait until the server prints its address."""
        assert process.stdout
        self.process = process
        self.url = process.stdout.readline().rstrip("\n")
        assert self.url, process.communicate()
        self.port = int(self.url.rpartition(":")[2])

    def request(self, method, path, body=None, headers=JSON_HEADERS):
        """Send an HTTP request, and return the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            named_headers = {}
            for name, value in response.getheaders():
                named_headers[name.lower()] = value
            return Response(response.status, named_headers, response.read())
        finally:
            connection.close()

    def translate(self, **fields):
        """Send a request to translate with these fields, and return the lines of the answer."""
        response = self.request("POST", "/translate", json.dumps(fields))
        assert response.status == 200
        return response.json()["lines"]


@contextmanager
def serving(project):
    """Run a server in a project, on a free port, until the context ends."""
    process = subprocess.Popen(
        [*COMMAND, "--port=0"],
        cwd=project,
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
    """Return a running server for the toy project."""
    with serving(toy) as running_server:
        yield running_server


def best_translation(translator, line):
    """Return the best translation of a line without a server."""
    (translated,) = translator([line])
    return translated.translations[0].text


@pytest.fixture
def expected_and_served_lines(server, translator):
    """Return the translations of three lines by the translator, and by the server."""
    lines = ["be ba", "", "du be\u2028gi"]
    served_lines = server.translate(text="\n".join(lines) + "\n", n_best=2)
    return list(zip(translator(lines, n_best=2), served_lines, strict=True))


def test_the_server_returns_the_translations_of_the_translator(expected_and_served_lines):
    """The translator is called here without a server; the lines have two translations each."""
    for expected_line, served_line in expected_and_served_lines:
        pairs = zip(expected_line.translations, served_line["translations"], strict=True)
        for expected, served in pairs:
            assert served["text"] == expected.text
            assert served["score"] == pytest.approx(expected.score, abs=2e-6)


def test_the_server_returns_the_warnings_of_the_translator(expected_and_served_lines):
    for expected_line, served_line in expected_and_served_lines:
        assert served_line["warnings"] == expected_line.warnings
        assert served_line["unknown"] == []


def test_a_request_without_attention_is_answered_with_null_for_attention(
    expected_and_served_lines,
):
    """Attention maps make an answer many times as large."""
    for _, served_line in expected_and_served_lines:
        assert served_line["attention"] is None


def test_two_sentences_on_one_line_are_translated_as_one_sentence(server, translator):
    """The same sentences on two lines have other translations. Lines may end as on Windows."""
    one_line, first_half, second_half = server.translate(
        text="be gibu. Gu dibe.\r\nbe gibu.\nGu dibe."
    )

    translation = one_line["translations"][0]["text"]
    assert translation == best_translation(translator, "be gibu. Gu dibe.")
    first_translation = first_half["translations"][0]["text"]
    second_translation = second_half["translations"][0]["text"]
    assert translation != f"{first_translation} {second_translation}"


def test_two_sentences_on_one_line_have_one_attention_map(server, translator):
    """The map has a column for each source token, and one for the end of the sentence (EOS)."""
    served_lines = server.translate(text="be gibu. Gu dibe.\r\nbe gibu.\nGu dibe.", attention=True)

    for line in served_lines:
        assert len(line["attention"]) == 1
    (attention_map,) = served_lines[0]["attention"]
    tokens_with_eos = len(translator.ids("be gibu. Gu dibe.")) + 1
    assert len(attention_map["columns"]) == tokens_with_eos


def test_a_warning_names_a_line_far_longer_than_the_training_sentences(server, translator):
    """A training sentence has two to six words, so at most 18 subwords and EOS."""
    short_line, long_line = server.translate(text="be ba\n" + "ga " * 60)

    assert short_line["warnings"] == []
    assert long_line["warnings"][-1] == (
        "the line is far longer than the training sentences (99.9% have at most "
        f"{translator.usual_length} tokens). A line is translated as one sentence. Put each "
        "sentence on its own line"
    )


def test_words_that_the_training_text_lacks_are_listed(server):
    """Each unknown word is listed once, in each of its spellings."""
    first_line, second_line = server.translate(text="be zzz, ba Zzz zzz.\nbe")

    assert first_line["unknown"] == ["zzz", "Zzz"]
    assert second_line["unknown"] == []


@pytest.fixture(scope="module")
def lines_with_attention(server):
    """Return the server's answer for a short, an empty and a very long line, with attention."""
    return server.translate(text="be ba\n\n" + "ga " * 300, attention=True)


def test_an_attention_map_has_a_weight_for_each_output_and_source_token(lines_with_attention):
    short_line, _, _ = lines_with_attention

    (attention_map,) = short_line["attention"]
    source_tokens = attention_map["columns"]
    output_tokens = attention_map["rows"]
    assert source_tokens[-1] == "</s>"
    assert output_tokens[-1] == "</s>"
    (heads,) = attention_map["weights"]  # of one decoder layer
    assert len(heads) == 4
    for head in heads:
        assert len(head) == len(output_tokens)
        for weights in head:
            assert len(weights) == len(source_tokens)


def test_the_attention_weights_of_an_output_token_sum_to_1(lines_with_attention):
    short_line, _, _ = lines_with_attention

    (attention_map,) = short_line["attention"]
    (heads,) = attention_map["weights"]  # of one decoder layer
    for head in heads:
        for weights in head:
            assert sum(weights) == pytest.approx(1, abs=1e-3)


def test_an_empty_line_has_no_attention_map_and_no_warning(lines_with_attention):
    _, empty_line, _ = lines_with_attention

    assert empty_line["attention"] == []
    assert empty_line["warnings"] == []


def test_a_line_too_long_for_the_model_has_several_attention_maps(lines_with_attention):
    """The line is translated in pieces, and each piece has its own map."""
    _, _, long_line = lines_with_attention

    assert "tokens too long for the model" in long_line["warnings"][0]
    assert len(long_line["attention"]) > 1


def test_attention_ends_before_the_line_that_makes_the_answer_too_large(translator, monkeypatch):
    """The limit is set to the number of weights of the first line, so the second one exceeds it.

    All lines are still translated.
    """
    lines = ["be ba", "be " * 50, "be"]
    translated_lines = translator(lines)
    (first_piece,) = translated_lines[0].pieces
    weights_of_first_line = 4 * len(first_piece.source) * (len(first_piece.tokens) + 1)  # 4 heads
    monkeypatch.setattr("bleuprint.serving.server._MAX_WEIGHTS", weights_of_first_line)

    content = answer(translator, TranslationRequest("\n".join(lines), n_best=1, attention=True))

    has_attention = [line["attention"] is not None for line in content["lines"]]
    assert has_attention == [True, False, False]
    for line, translated in zip(content["lines"], translated_lines, strict=True):
        assert line["translations"][0]["text"] == translated.translations[0].text


def test_a_line_has_one_translation_unless_the_request_asks_for_more(server):
    (line,) = server.translate(text="be ba")

    assert len(line["translations"]) == 1


def test_the_server_shows_a_page_with_a_field_for_text(server):
    response = server.request("GET", "/")

    assert response.status == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert b"<textarea" in response.body
    assert b"{{" not in response.body  # of the template


def test_the_server_answers_to_the_host_name_localhost(server):
    response = server.request("GET", "/", headers={"Host": f"localhost:{server.port}"})

    assert response.status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/serve.html.j2",
        "/translate/",
        "/docs",
        "/../params.yaml",
        "/%2e%2e/params.yaml",
        "//etc/passwd",
    ],
)
def test_other_paths_are_not_found(server, path):
    """The server must not give away files of this machine, such as /etc/passwd or params.yaml."""
    response = server.request("GET", path)

    assert response.status == 404
    assert response.json() == {"error": "Not Found"}


@pytest.mark.parametrize("path", ["/", "/translate", "/nowhere"])
def test_every_response_forbids_browsers_to_load_other_content(server, path):
    """A translation that contains HTML could otherwise run a script in the browser."""
    headers = server.request("GET", path).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "; script-src 'sha256-" in policy
    assert headers["x-content-type-options"] == "nosniff"


def test_pages_of_other_sites_may_not_read_a_response(server):
    """A browser lets another site read a response if it has an access-control header."""
    response = server.request("GET", "/", headers={"Origin": "http://evil.example"})

    assert not any(name.startswith("access-control") for name in response.headers)


@pytest.mark.parametrize("path", ["/", "/translate"])
@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "evil.example:127.0.0.1", "[::1]", ""]
)
def test_requests_to_another_host_name_are_refused(server, host, path):
    """A site whose name is made to point to this machine could read the translations otherwise."""
    response = server.request("GET", path, headers={"Host": host})

    assert response.status == 400
    assert response.body == b"Invalid host header"


@pytest.mark.parametrize(
    "content_type", [None, "text/plain", "application/jsonp", "multipart/form-data"]
)
def test_a_body_with_another_content_type_is_refused(server, content_type):
    """Pages of other sites may send these types without asking the server first, but not JSON."""
    headers = {} if content_type is None else {"Content-Type": content_type}

    response = server.request("POST", "/translate", '{"text": "be"}', headers)

    assert response.status == 415
    assert list(response.json()) == ["error"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        pytest.param(b"{", 400, "not JSON", id="not JSON"),
        pytest.param(b'{"text": "\xff"}', 400, "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 60_000, 400, "not JSON", id="nested too deeply"),
        pytest.param(
            b'{"text": "be", "n_best": ' + b"1" * 5000 + b"}", 400, "not JSON", id="huge number"
        ),
        pytest.param(b"[]", 422, "body: [] is not a mapping", id="list"),
        pytest.param(b'{"text": "\\ud800"}', 400, "surrogates not allowed", id="surrogate"),
        pytest.param(
            b'{"text": "be", "n_best": 0}',
            422,
            "n_best: 0 is out of range: it must be at least 1",
            id="no translation",
        ),
        pytest.param(
            b'{"text": "be", "n_best": 3}',
            422,
            "n_best 3 is above decode.beam (2)",
            id="more translations than the beam",
        ),
        pytest.param(
            b'{"text": "be", "nbest": 1}',
            422,
            "nbest: unknown key. Did you mean 'n_best'?",
            id="unknown key",
        ),
    ],
)
def test_an_invalid_body_is_refused_with_the_reason(server, body, status, message):
    response = server.request("POST", "/translate", body)

    assert response.status == status
    assert message in response.json()["error"]


def translation_request_of_size(byte_count):
    """Return a request to translate spaces, of so many bytes."""
    before_text = b'{"text": "'
    after_text = b'"}'
    space_count = byte_count - len(before_text) - len(after_text)
    return before_text + b" " * space_count + after_text


def test_a_body_of_the_maximum_size_is_accepted(server):
    """The maximum, MAX_BODY_BYTES, is 65,536 bytes (64 KiB)."""
    body = translation_request_of_size(MAX_BODY_BYTES)

    assert server.request("POST", "/translate", body).status == 200


@pytest.mark.parametrize("byte_count", [MAX_BODY_BYTES + 1, 20_000_000])
def test_a_larger_body_is_refused(server, byte_count):
    """The maximum, MAX_BODY_BYTES, is 65,536 bytes (64 KiB)."""
    body = translation_request_of_size(byte_count)

    response = server.request("POST", "/translate", body)

    assert response.status == 413
    assert list(response.json()) == ["error"]


@pytest.mark.parametrize("byte_count", [MAX_BODY_BYTES + 1, 20_000_000])
def test_a_larger_body_sent_in_chunks_is_refused(server, byte_count):
    """The size of a body sent in chunks is known only at its end."""
    body = translation_request_of_size(byte_count)
    chunks = [body[start : start + 8192] for start in range(0, byte_count, 8192)]

    assert server.request("POST", "/translate", iter(chunks)).status == 413


def test_requests_at_the_same_time_get_the_answers_of_requests_one_by_one(server):
    """If requests shared data in the server, an answer could belong to another request."""
    texts = ["be ki", "be ti", "be li", "be mi", "de ki", "de ti", "de li", "de mi"]
    answers_one_by_one = [server.translate(text=text) for text in texts]
    distinct_answers = {json.dumps(lines) for lines in answers_one_by_one}
    assert len(distinct_answers) > 4  # If all were equal, mixed answers would not be noticed.

    with ThreadPoolExecutor(len(texts)) as pool:
        futures = [pool.submit(server.translate, text=text) for text in texts]

    for future, expected_answer in zip(futures, answers_one_by_one, strict=True):
        assert future.result() == expected_answer


@pytest.fixture
def slow_project(toy, tmp_path):
    """Return a copy of the toy project that searches for long outputs with a large beam."""
    folder = shutil.copytree(toy, tmp_path / "slow")
    params = (folder / "params.yaml").read_text()
    for old, new in (
        ("beam: 2", "beam: 30"),
        ("min_len: 0", "min_len: 200"),
        ("max_len_b: 10", "max_len_b: 250"),
    ):
        assert params.count(old) == 1
        params = params.replace(old, new)
    (folder / "params.yaml").write_text(params)
    return folder


@pytest.mark.parametrize(
    "stop_signal", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM]
)
def test_a_signal_ends_the_server_while_it_translates(slow_project, stop_signal):
    """The server does not wait for the end of the translations, which take minutes."""
    body = json.dumps({"text": ("be ba di gu " * 50 + "\n") * 100})
    with serving(slow_project) as server, ThreadPoolExecutor(2) as pool:
        idle_seconds = processes.cpu_seconds(server.process)
        first_request = pool.submit(server.request, "POST", "/translate", body)
        second_request = pool.submit(server.request, "POST", "/translate", body)
        # Wait until the server has begun to translate.
        while processes.cpu_seconds(server.process) < idle_seconds + 0.5:
            assert server.process.poll() is None
            time.sleep(0.05)

        server.process.send_signal(stop_signal)

        assert server.process.communicate(timeout=60) == ("", "")
        assert server.process.returncode == 0
        for future in (first_request, second_request):
            has_no_response = future.exception() is not None
            assert has_no_response or future.result().status == 500


def test_a_port_in_use_is_reported(toy, server):
    """A server is running on the port; a second one is started with the same port."""
    process = processes.run_text([*COMMAND, f"--port={server.port}"], toy, environment())

    assert process.returncode == 1
    assert process.stdout == ""
    assert process.stderr == (
        f"bleuprint: error: --port {server.port}: Address already in use. Choose another port, or "
        "0 for a free one\n"
    )


def test_the_server_prints_the_address_of_this_machine(server):
    assert server.url == f"http://127.0.0.1:{server.port}"


def test_the_server_listens_only_on_the_address_that_it_prints(server):
    """It prints 127.0.0.1, which other machines cannot reach.

    All addresses 127.x.x.x belong to this machine. A server on all addresses would accept this
    connection, and those of other machines.
    """
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/"), ("GET", "/translate"), ("OPTIONS", "/translate")]
)
def test_other_http_methods_are_refused(server, method, path):
    """The page / is for GET, and /translate for POST. The header Allow names the right method."""
    response = server.request(method, path, "{}")

    assert response.status == 405
    assert response.json() == {"error": "Method Not Allowed"}
    assert response.headers["allow"]
