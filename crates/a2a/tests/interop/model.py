"""A model for lango on loopback, with OpenAI's API. It streams a fixed answer in small chunks.

    model.py PORT
"""

import http.server
import json
import sys
import time

ANSWER = " ".join(f"word{number}" for number in range(40))


class Model(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.whole({"data": [{"id": "scripted"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not request.get("stream"):
            message = {"role": "assistant", "content": ANSWER}
            return self.whole({"id": "x", "object": "chat.completion", "model": "scripted",
                               "choices": [{"index": 0, "finish_reason": "stop", "message": message}]})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for word in ANSWER.split(" "):
            # Each space belongs to the word after it, as in real tokens.
            text = word if word == "word0" else f" {word}"
            self.chunk({"content": text}, None)
            time.sleep(0.02)
        self.chunk({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def chunk(self, delta, reason):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        data = {"id": "x", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()

    def whole(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
