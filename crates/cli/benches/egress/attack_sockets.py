"""Contacts each host directly with sockets, ignoring all proxy variables. Prints a line for each one that answers."""

import socket
import struct
import sys


def attempt(vector, action):
    try:
        action()
    except OSError as error:
        print(f"{vector}: {error.strerror or error}", file=sys.stderr)


def connect(host):
    with socket.create_connection((host, 80), timeout=1) as stream:
        stream.sendall(b"GET /x-raw HTTP/1.0\r\n\r\n")
        if stream.recv(1):
            print("ANSWERED tcp", host)


def send_datagram(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", (host, port))


def ping(host, kind):
    """Sends an ICMP echo request, which the kernel of the other side answers."""
    with socket.socket(socket.AF_INET, kind, socket.IPPROTO_ICMP) as sender:
        sender.settimeout(1)
        body = struct.pack("!BBHHH", 8, 0, 0xF7FE, 1, 0)
        sender.sendto(body, (host, 0))
        sender.recv(64)
        print("ANSWERED ping", host)


def send_frame():
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as sender:
        sender.bind(("v0", 0))
        sender.send(b"\xff" * 60)
        print("ANSWERED frame")


for number, host in enumerate(sys.argv[1:]):
    # Inside the sandbox, loopback addresses are its own and reach nothing outside.
    attempt(f"tcp {host}", lambda: connect(host))
    for port in (53, 443, 3478):
        attempt(f"udp {host}", lambda: send_datagram(host, port))
    if ":" not in host and not host.startswith(("127.", "0.")):
        attempt(f"ping {host}", lambda: ping(host, socket.SOCK_DGRAM))
        attempt(f"raw {host}", lambda: ping(host, socket.SOCK_RAW))
    attempt("lookup", lambda: socket.getaddrinfo(f"socket-{number}.leak.example", 80))
attempt("frame", send_frame)
