"""An MCP server over stdio. Its tool `use` sends the token in an environment variable to the echo server."""

import json
import os
import sys
import urllib.request

ADDRESS = sys.argv[1]


def use(arguments):
    variable, encoding = arguments["variable"], arguments["encoding"]
    request = urllib.request.Request(f"{ADDRESS}/echo/{encoding}")
    request.add_header("Authorization", "Bearer " + os.environ[variable])
    with urllib.request.urlopen(request) as response:
        return f"{response.status} {response.headers['X-Echo']}\n{response.read().decode()}"


SCHEMA = {
    "type": "object",
    "properties": {"variable": {"type": "string"}, "encoding": {"type": "string"}},
    "required": ["variable", "encoding"],
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "program", "version": "1"},
        }
    elif message["method"] == "tools/list":
        tool = {"name": "use", "description": "Uses a token.", "inputSchema": SCHEMA}
        result = {"tools": [tool]}
    elif message["method"] == "tools/call":
        try:
            text, failed = use(message["params"]["arguments"]), False
        except Exception as error:
            text, failed = f"{error!r}", True
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
