"""A server for chat completions whose model is a Python generator: it receives the result of each call and yields the next
call."""

import http.server
import json
import threading


def text_of(content):
    """Returns the text of a message's content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or [])


class PolicyServer:
    """A model server that plays one policy at a time."""

    def __init__(self):
        self.policy = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                request = json.loads(self.rfile.read(int(self.headers["content-length"])))
                message = outer.reply(request["messages"])
                reply = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "policy"}
                calls = message.get("tool_calls")
                for at, call in enumerate(calls or []):
                    call["index"] = at
                choice = {"index": 0, "delta": message, "finish_reason": "tool_calls" if calls else "stop"}
                usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
                body = f"data: {json.dumps(reply | {'choices': [choice], 'usage': usage})}\n\ndata: [DONE]\n\n".encode()
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.calls = 0

    def play(self, policy):
        self.policy, self.calls = policy, 0

    def reply(self, messages):
        last = messages[-1]
        try:
            if last["role"] == "tool":
                name, arguments = self.policy.send(text_of(last["content"]))
            else:
                name, arguments = next(self.policy)
        except StopIteration:
            return {"role": "assistant", "content": "done"}
        self.calls += 1
        call = {"id": f"call_{self.calls}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
