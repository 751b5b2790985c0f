"""A web server and a proxy on the loopback interface; a test sets and inspects every response."""

import http.client
import http.server
import re
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Seen:
    """One request, and the number of bytes of the body sent for it."""

    path: str
    range: str | None
    headers: dict
    sent: int = 0


@dataclass
class Page:
    body: bytes
    headers: dict = field(default_factory=dict)
    ranges: bool = True


class Host(http.server.ThreadingHTTPServer):
    """Serves `pages`; `script` replaces the next responses for a path, one entry a request.

    An entry is a function of the handler and the page, such as those below.
    """

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages, self.script, self.seen = {}, {}, []
        self.prefix = f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, path, body, ranges=True, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = Page(body, named, ranges)
        return self.url(path)

    def respond_with(self, path, responses):
        """Answer the next requests for a path with these responses, then with its page again."""
        self.script[path] = list(responses)

    def url(self, path):
        return f"{self.prefix}{path}"

    def asked(self, path):
        return [seen for seen in self.seen if seen.path == path]


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.seen = Seen(self.path, self.headers["Range"], dict(self.headers))
        self.server.seen.append(self.seen)
        script = self.server.script.get(self.path)
        page = self.server.pages.get(self.path)
        try:
            if script:
                script.pop(0)(self, page)
            elif page is None:
                self.send_error(404)
            else:
                serve(self, page)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the other side was killed

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def body(self, data):
        self.seen.sent += len(data)  # before: a client that has all of it may look at once
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve(handler, page, limit=None):
    """Serve the page, or the Range requested; at most `limit` bytes, then close."""
    wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
    begin = int(wanted[1]) if wanted and page.ranges else 0
    whole = len(page.body)
    if begin and begin >= whole:
        handler.head(416, {"Content-Range": f"bytes */{whole}", "Content-Length": 0})
        return
    headers = {"Content-Length": whole - begin, **page.headers}
    if begin:
        headers["Content-Range"] = f"bytes {begin}-{whole - 1}/{whole}"
    handler.head(206 if begin else 200, headers)
    handler.body(page.body[begin:][:limit])


def cut(count):
    """Serve the first `count` bytes, then close the connection."""
    return lambda handler, page: serve(handler, page, count)


def hang_up(handler, _):
    handler.connection.close()


def status(code, body=b"", **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def answer(handler, _):
        handler.head(code, {"Content-Length": len(body), **named})
        handler.body(body)

    return answer


def stall(count, over):
    """Send `count` bytes and nothing more until `over`, an event, is set."""

    def answer(handler, page):
        serve(handler, page, count)
        over.wait(60)

    return answer


def in_chunks(*pieces, end=True):
    """The body in chunks, without a length; without an `end` the connection just closes."""

    def answer(handler, _):
        handler.protocol_version = "HTTP/1.1"
        handler.head(200, {"Transfer-Encoding": "chunked"})
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if end:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def free_port():
    """A port of the loopback on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Proxy(http.server.ThreadingHTTPServer):
    """Forwards requests for any host to one host; refuses tunnels (CONNECT)."""

    def __init__(self, host):
        super().__init__(("127.0.0.1", 0), _Relay)
        self.host = host
        self.asked = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Relay(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        connection = http.client.HTTPConnection(*self.server.host.server_address)
        connection.request("GET", urlsplit(self.path).path, headers=dict(self.headers))
        answer = connection.getresponse()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.read())
        connection.close()

    def do_CONNECT(self):
        self.server.asked.append(self.path)
        self.send_error(403)

    def log_message(self, *_):
        pass


@contextmanager
def running(server):
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
