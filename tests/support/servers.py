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
class Request:
    """A request that a host received.

    Attributes:
        path: The path of its address.
        range: The header `Range`; None without one.
        headers: All headers.
        sent_bytes: How many bytes of a body were sent in response.
    """

    path: str
    range: str | None
    headers: dict
    sent_bytes: int = 0


@dataclass
class Page:
    """The content of an address.

    Attributes:
        body: The bytes.
        headers: Headers of each response with it.
        ranges: Whether the host sends a part of it if a request has the header `Range`.
    """

    body: bytes
    headers: dict = field(default_factory=dict)
    ranges: bool = True


class Host(http.server.ThreadingHTTPServer):
    """A web server that serves pages, and other responses where a test asks for them.

    Attributes:
        pages: The pages by path.
        script: By path, the next responses, which come before the page, one for each request. A
            response is a function of the handler and the page, such as the ones below.
        requests: The requests so far.
        prefix: The address of the server.
    """

    def __init__(self):
        """Listen on a free port of the loopback interface."""
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = {}
        self.script = {}
        self.requests = []
        self.prefix = f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, path, body, ranges=True, **headers):
        """Serve a page at a path, and return its address; see Page."""
        self.pages[path] = Page(body, _header_names(headers), ranges)
        return self.url(path)

    def respond_with(self, path, responses):
        """Answer the next requests for a path with these responses, then with its page again."""
        self.script[path] = list(responses)

    def url(self, path):
        """Return the address of a path."""
        return f"{self.prefix}{path}"

    def requests_for(self, path):
        """Return the requests for a path so far."""
        return [request for request in self.requests if request.path == path]


def _header_names(headers):
    """Return headers under their names: Content-Type for the keyword Content_Type."""
    return {name.replace("_", "-"): value for name, value in headers.items()}


class _Handler(http.server.BaseHTTPRequestHandler):
    """Answers a request to Host."""

    def do_GET(self):
        """Send the next response of the script, or the page, or 404."""
        self.recorded_request = Request(self.path, self.headers["Range"], dict(self.headers))
        self.server.requests.append(self.recorded_request)
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
            pass  # The client was killed.

    def head(self, status, headers):
        """Send a status and headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def body(self, data):
        """Send bytes of the body, and count them."""
        # Counted first: once the client has all bytes, the test may read the number at once.
        self.recorded_request.sent_bytes += len(data)
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def serve(handler, page, limit=None):
    """Serve a page, or the range of it that a request asks for.

    Args:
        handler: The handler of the request.
        page: The page.
        limit: How many bytes to send before the connection is closed; None sends all.
    """
    requested_range = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
    start = int(requested_range[1]) if requested_range and page.ranges else 0
    size = len(page.body)
    if start and start >= size:
        handler.head(416, {"Content-Range": f"bytes */{size}", "Content-Length": 0})
        return
    headers = {"Content-Length": size - start, **page.headers}
    if start:
        headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
    handler.head(206 if start else 200, headers)
    handler.body(page.body[start:][:limit])


def break_off_after(count):
    """Return a response of the first `count` bytes, after which the connection is closed."""
    return lambda handler, page: serve(handler, page, count)


def hang_up(handler, _):
    """Close the connection without a response."""
    handler.connection.close()


def status(code, body=b"", **headers):
    """Return a response for `Host.respond_with`: a function that sends it.

    Args:
        code: The HTTP status.
        body: The bytes of the body.
        **headers: The headers, such as Content_Type for Content-Type.
    """

    def answer(handler, _):
        """Send the status, the headers and the body."""
        handler.head(code, {"Content-Length": len(body), **_header_names(headers)})
        handler.body(body)

    return answer


def stall(count, over):
    """Return a response of `count` bytes, after which nothing comes until an event is set.

    Args:
        count: The number of bytes.
        over: The event, a threading.Event.
    """

    def answer(handler, page):
        """Send the bytes, and wait for the event for at most a minute."""
        serve(handler, page, count)
        over.wait(60)

    return answer


def in_chunks(*pieces, end=True):
    """Return a response whose body comes in chunks, so that its length is not known before.

    Args:
        pieces: The chunks, as bytes.
        end: Whether to send the mark of the end; otherwise the connection just closes.
    """

    def answer(handler, _):
        """Send each piece as a chunk: its length in hexadecimal digits, and its bytes."""
        handler.protocol_version = "HTTP/1.1"
        handler.head(200, {"Transfer-Encoding": "chunked"})
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        if end:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = True

    return answer


def free_port():
    """Return a port of the loopback interface on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as free_socket:
        return int(free_socket.getsockname()[1])


class Proxy(http.server.ThreadingHTTPServer):
    """A proxy that forwards requests for any host to one host, and refuses tunnels (CONNECT).

    Attributes:
        host: The host.
        requested_addresses: The addresses of the requests so far.
        url: The address of the proxy.
    """

    def __init__(self, host):
        """Listen on a free port of the loopback interface."""
        super().__init__(("127.0.0.1", 0), _Relay)
        self.host = host
        self.requested_addresses = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Relay(http.server.BaseHTTPRequestHandler):
    """Answers a request to Proxy."""

    def do_GET(self):
        """Request the path from the host, and pass on its response."""
        self.server.requested_addresses.append(self.path)
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
        """Refuse a tunnel."""
        self.server.requested_addresses.append(self.path)
        self.send_error(403)

    def log_message(self, *_):
        pass


@contextmanager
def running(server):
    """Run a server in a thread, and stop it at the end."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
