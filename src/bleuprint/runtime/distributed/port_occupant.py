"""The program that occupies a network address: what a message can say of it.

Training processes meet at an address, MASTER_ADDR:MASTER_PORT. If another program listens there,
the user needs to know which one.
"""

import re
import socket
from contextlib import suppress

# How long to wait for the first line of an unknown server, in seconds.
_GREETING_SECONDS = 1.0
# The number of bytes of this line to read: enough for the name and version of the server.
_GREETING_BYTES = 80


def describe_occupant(host: str, port: int) -> str:
    """Describe the program that listens at a network address, for the end of a message.

    Args:
        host: The name or number of the host.
        port: The number of the port.

    Returns:
        A text such as ` (sshd, process 12, it says 'SSH-2.0')`, with a space before it; an empty
        text if nothing is known.
    """
    descriptions = []
    with suppress(OSError):
        listener = _local_listener(host, port)
        if listener is not None:
            descriptions.append(listener)
    with suppress(OSError):
        greeting = _greeting(host, port)
        if greeting:
            descriptions.append(f"it says {greeting!r}")
    return f" ({', '.join(descriptions)})" if descriptions else ""


def _local_listener(host: str, port: int) -> str | None:
    """Return the name and id of the process that listens at an address of this machine.

    Returns:
        A text such as `sshd, process 12`; None if the address belongs to another machine, or if
        this user may not see the process.
    """
    import psutil  # Imported here, because it is slow and needed only for an error message.

    if _machine_addresses().isdisjoint(_resolved_addresses(host, port)):
        return None
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            is_listener = connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            if is_listener and connection.pid is not None:
                name = psutil.Process(connection.pid).name()
                return f"{name}, process {connection.pid}"
    return None


def _machine_addresses() -> set[str]:
    """Return the addresses of this machine, such as `127.0.0.1`: of all its network interfaces."""
    import psutil

    addresses: set[str] = set()
    for interface_addresses in psutil.net_if_addrs().values():
        addresses.update(interface.address for interface in interface_addresses)
    return addresses


def _resolved_addresses(host: str, port: int) -> set[str]:
    """Return the IP addresses that a host name resolves to."""
    addresses: set[str] = set()
    for _family, _kind, _protocol, _name, socket_address in socket.getaddrinfo(host, port):
        addresses.add(str(socket_address[0]))
    return addresses


def _greeting(host: str, port: int) -> str:
    """Return the first line that a server sends, by which a user may recognize the server.

    Some servers, such as SSH, send a line as soon as a client connects. If nothing arrives, an HTTP
    request is sent, to which many other servers reply.

    Returns:
        The line; an empty text if it does not begin with readable text.
    """
    with socket.create_connection((host, port), _GREETING_SECONDS) as connection:
        try:
            answer = connection.recv(_GREETING_BYTES)
        except TimeoutError:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            answer = connection.recv(_GREETING_BYTES)
    # In ASCII, the printable characters are those from the space to the tilde.
    printable = re.match(rb"[ -~]*", answer)
    return printable[0].decode().strip() if printable else ""
