"""A scripted provider on 127.0.0.1, and the lango binary that runs against it.

Every run has its own path (`/7/…`), so that one server can serve many concurrent runs. Bodies are sent in pieces that are split
at arbitrary bytes, even in the middle of a character or a line ending.
"""

import http.server
import json
import os
import random
import socket
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field

from wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

KIND = {CHAT: "openai", RESPONSES: "openai", ANTHROPIC: "anthropic", GEMINI: "gemini"}
BASE = {CHAT: "v1", RESPONSES: "v1", ANTHROPIC: "v1", GEMINI: "v1beta"}
KEY = "sk-recordings-0123456789"
RUN_SECONDS = 40


@dataclass
class Answer:
    status: int
    body: bytes
    content_type: str = "application/json"
    headers: dict = field(default_factory=dict)


@dataclass
class Exchange:
    """The answers of one run, and the requests that it sent."""

    answers: list
    last: Answer
    requests: list = field(default_factory=list)  # (path, headers, body)


class Server:
    """A provider that plays answers. `last` answers every further request of a run."""

    def __init__(self):
        server = self
        self.exchanges = {}

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                exchange = server.exchanges[self.path.split("/")[1]]
                at = len(exchange.requests)
                exchange.requests.append((self.path, dict(self.headers.items()), json.loads(body)))
                answer = exchange.answers[at] if at < len(exchange.answers) else exchange.last
                self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self._play(answer)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def _play(self, answer):
                self.send_response(answer.status)
                self.send_header("content-type", answer.content_type)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                for piece in pieces(answer.body):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                    self.wfile.flush()
                    time.sleep(0.0002)
                self.wfile.write(b"0\r\n\r\n")

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                pass  # lango may close a connection at any time

        self.http = Listener(("127.0.0.1", 0), Handler)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def play(self, run, answers, last):
        exchange = Exchange(answers, last)
        self.exchanges[run] = exchange
        return exchange

    def url(self, run, wire):
        return f"http://127.0.0.1:{self.port}/{run}/{BASE[wire]}"


def pieces(body):
    """Splits a body into up to ten pieces. The positions depend only on the body."""
    if len(body) < 2:
        return [body] if body else []
    generator = random.Random(len(body) * 31 + body[len(body) // 2])
    cuts = sorted({generator.randrange(1, len(body)) for _ in range(min(9, len(body) - 1))})
    return [body[start:end] for start, end in zip([0, *cuts], [*cuts, len(body)])]


def final_text(wire):
    """Returns a plain text answer, which ends the turn after the recorded answer."""
    text = "That is all."
    body = {
        CHAT: {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]},
        ANTHROPIC: {"type": "message", "role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 1}},
        GEMINI: {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]},
        RESPONSES: {
            "id": "resp_1",
            "object": "response",
            "status": "completed",
            "output": [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}],
        },
    }[wire]
    return Answer(200, json.dumps(body).encode())


@dataclass
class Run:
    code: int
    events: list
    progress: str


class Lango:
    """The binary, with its own home and workspace."""

    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="lango-wires-")
        for name in ("home", "workspace"):
            os.mkdir(f"{self.folder.name}/{name}")
        self.workspace = f"{self.folder.name}/workspace"

    def supports(self, key):
        """Returns whether the configuration has a key."""
        shown = self._start(["-c", f"{key}=?", "config", "check"])
        return b"unknown key" not in shown.stdout + shown.stderr

    def has_option(self, option):
        return option.encode() in self._start(["run", "--help"]).stdout

    def run(self, settings, prompt="Say what you think.", options=("--ephemeral",)):
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        ended = self._start(["run", "--jsonl", *options, *flags, prompt])
        events = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith(b"{")]
        return Run(ended.returncode, events, ended.stderr.decode("utf-8", "replace"))

    def _start(self, arguments):
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": f"{self.folder.name}/home",
            "LANGO_HOME": f"{self.folder.name}/home",
            "RECORDINGS_KEY": KEY,
        }
        return subprocess.run([self.binary, *arguments], env=environment, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True, timeout=RUN_SECONDS)


def settings(provider, model, wire, url, stream=True):
    """Returns the configuration of one provider, with a single agent whose tools are all denied."""
    chosen = {
        "agent.multiAgent": "false",
        "agent.model": f"{provider}/{model}",
        f"providers.{provider}.kind": KIND[wire],
        f"providers.{provider}.baseUrl": url,
        f"providers.{provider}.apiKeyEnv": "RECORDINGS_KEY",
        f"providers.{provider}.stream": "true" if stream else "false",
        "approval.rules": '[{ action = "deny", tool = "*" }]',
    }
    if wire == RESPONSES:
        chosen[f"providers.{provider}.api"] = "responses"
    return chosen
