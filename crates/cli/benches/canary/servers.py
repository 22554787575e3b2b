"""Servers that require a token and echo it in every encoding, for the canary run.

usage: servers.py FOLDER CERTIFICATE KEY

Prints a JSON line with the ports, then serves until standard input ends. Appends the SHA-256 of each received token and the
request path to FOLDER/arrived, so that the harness can check that the value was used.
"""

import base64
import gzip
import hashlib
import html
import json
import os
import ssl
import subprocess
import sys
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FOLDER, CERTIFICATE, KEY = sys.argv[1:]
LOCK = threading.Lock()


def b64(data, alphabet=base64.b64encode):
    return alphabet(data.encode()).decode()


ENCODINGS = {
    "raw": lambda v: v,
    "base64": b64,
    "base64-1": lambda v: b64(":" + v + "."),
    "base64-2": lambda v: b64("u:" + v + ".."),
    "base64url": lambda v: b64("~?" + v, base64.urlsafe_b64encode),
    "hex": lambda v: v.encode().hex(),
    "hex-capitals": lambda v: v.encode().hex().upper(),
    "percent": lambda v: urllib.parse.quote(v, safe=""),
    "percent-all": lambda v: "".join("%%%02X" % b for b in v.encode()),
    "form": urllib.parse.quote_plus,
    "json": lambda v: json.dumps(v)[1:-1],
    "json-ascii": lambda v: "".join("\\u%04x" % ord(c) for c in v),
    "html": html.escape,
    "html-numbers": lambda v: "".join("&#%d;" % ord(c) for c in v),
    "gzip": lambda v: v,
}


def all_encodings(token):
    return "\n".join(f"{name}: {encode(token)}" for name, encode in ENCODINGS.items())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.handle_request()

    def do_POST(self):
        self.handle_request()

    def handle_request(self):
        length = self.headers.get("Content-Length")
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = self.read_chunks()
        else:
            body = self.rfile.read(int(length or 0))
        parts = self.path.split("?")[0].strip("/").split("/")
        if self.path.endswith("agent-card.json"):
            return self.answer_json(self.card(parts[1]))
        token = self.token()
        if token is None:
            return self.answer(401, b"no token", {"WWW-Authenticate": 'Basic realm="x"'})
        self.note(token)
        if parts[0] == "git":
            return self.git(body)
        if parts[0] == "echo":
            return self.echo(token, parts[1])
        if parts[0] == "mcp":
            return self.mcp(token, json.loads(body or b"null"))
        if parts[0] == "a2a":
            return self.a2a(token, json.loads(body))
        self.answer(404, b"nothing here")

    def read_chunks(self):
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def token(self):
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            return base64.b64decode(value).decode().partition(":")[2]
        return value if kind == "Bearer" else None

    def note(self, token):
        digest = hashlib.sha256(token.encode()).hexdigest()
        with LOCK, open(os.path.join(FOLDER, "arrived"), "a") as file:
            file.write(f"{digest} {self.path}\n")

    def answer(self, status, body, headers={}):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer_json(self, value):
        self.answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def echo(self, token, encoding):
        text = ENCODINGS[encoding](token)
        body = f'{{"you sent": "{text}", "and": "more"}}\n'.encode()
        headers = {"X-Echo": urllib.parse.quote(token), "Content-Type": "text/plain"}
        if encoding == "gzip":
            body = gzip.compress(body)
            headers["Content-Encoding"] = "gzip"
        self.answer(200, body, headers)

    def git(self, body):
        path, _, query = self.path.partition("?")
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": FOLDER,
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "HTTP_GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": "git",
        }
        ran = subprocess.run(["git", "http-backend"], input=body, env=environment, capture_output=True)
        head, _, content = ran.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        self.answer(status, content, fields)

    def mcp(self, token, message):
        method, number = message["method"], message.get("id")
        if number is None:
            return self.answer(202, b"")
        result = {
            "initialize": lambda: {
                "protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
                "instructions": "your token is " + token,
            },
            "tools/list": lambda: {
                "tools": [{
                    "name": "echo",
                    "description": "Repeats the token " + token,
                    "inputSchema": {"type": "object"},
                }]
            },
            "tools/call": lambda: {
                "content": [{"type": "text", "text": all_encodings(token)}],
            },
        }.get(method, dict)()
        self.answer_json({"jsonrpc": "2.0", "id": number, "result": result})

    def card(self, number):
        return {
            "name": "echo " + number,
            "description": "Repeats its token.",
            "version": "1",
            "supportedInterfaces": [{
                "url": f"http://127.0.0.1:{self.server.server_port}/a2a/{number}/rpc",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }],
            "capabilities": {"streaming": False},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [],
        }

    def a2a(self, token, message):
        task = {
            "id": "t-1",
            "contextId": "c-1",
            "status": {"state": "TASK_STATE_COMPLETED"},
            "artifacts": [{"artifactId": "a", "parts": [{"text": all_encodings(token)}]}],
        }
        self.answer_json({"jsonrpc": "2.0", "id": message["id"], "result": {"task": task}})


class Server(ThreadingHTTPServer):
    def handle_error(self, *_):
        """Ignores errors: some clients disconnect early, which is part of the run."""


def serve(is_secure):
    server = Server(("127.0.0.1", 0), Handler)
    if is_secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE, KEY)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


print(json.dumps({"https": serve(True), "http": serve(False)}), flush=True)
sys.stdin.read()
