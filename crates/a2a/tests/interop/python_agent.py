"""An agent on the server of the Python SDK, to test lango's client.

    python_agent.py PORT

Serves the same agent four times, at /jsonrpc-stream, /jsonrpc-poll, /rest-stream and /rest-poll. The first word of a
message is a command; see `Agent.execute`.
"""

import asyncio
import sys

import uvicorn
from a2a.helpers import (
    new_data_part,
    new_raw_part,
    new_task_from_user_message,
    new_text_message,
    new_text_part,
)
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
)
from starlette.applications import Starlette
from starlette.routing import Mount

PAUSE = 0.05


class Agent(AgentExecutor):
    async def execute(self, context, queue):
        command, _, rest = context.get_user_input().partition(" ")
        if command == "message":
            await queue.enqueue_event(new_text_message(f"just {rest}", context_id=context.context_id))
            return
        is_reply = context.current_task is not None
        if not is_reply:
            await queue.enqueue_event(new_task_from_user_message(context.message))
        task = TaskUpdater(queue, context.task_id, context.context_id)

        def message(text):
            return task.new_agent_message([new_text_part(text)])

        await task.start_work(message("looking at it"))
        await asyncio.sleep(PAUSE)
        if is_reply:
            await task.add_artifact([new_text_part(f"weather of {context.get_user_input()}")], artifact_id="a")
            await task.complete()
        elif command == "echo":
            await task.add_artifact([new_text_part(rest)], artifact_id="a")
            await task.complete()
        elif command == "count":
            for number in range(int(rest)):
                chunk = [new_text_part(f"{number} ")]
                await task.add_artifact(chunk, artifact_id="a", append=number > 0, last_chunk=number + 1 == int(rest))
                await asyncio.sleep(PAUSE)
            await task.complete()
        elif command == "thrice":
            for number, half in enumerate([rest[:3], rest[3:]]):
                await task.add_artifact([new_text_part(half)], artifact_id="a", append=number > 0)
            await task.add_artifact([new_text_part(rest)], artifact_id="b")
            await task.complete(message(rest))
        elif command == "status":
            await task.complete(message(rest))
        elif command == "parts":
            parts = [
                new_data_part({"answer": 42}),
                new_raw_part(b"hello", media_type="text/plain", filename="hello.txt"),
            ]
            await task.add_artifact(parts, artifact_id="a")
            await task.complete()
        elif command == "ask":
            await task.requires_input(message("Which city?"))
        elif command == "auth":
            await task.requires_auth(message("Sign in first."))
        elif command == "fail":
            await task.failed(message("out of flour"))
        elif command == "reject":
            await task.reject(message("not my trade"))
        elif command == "crash":
            raise RuntimeError("a bug in the agent")
        elif command == "slow":
            await asyncio.sleep(600)

    async def cancel(self, context, queue):
        await TaskUpdater(queue, context.task_id, context.context_id).cancel()


def mount(base, name, binding, streams):
    url = f"{base}/{name}"
    interface = AgentInterface(url=f"{url}/a2a", protocol_binding=binding, protocol_version="1.0")
    card = AgentCard(
        name=name,
        description="Does what the first word says.",
        version="1",
        supported_interfaces=[interface],
        capabilities=AgentCapabilities(streaming=streams),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Says it again.", tags=["echo"])],
    )
    handler = DefaultRequestHandler(agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card)
    if binding == "JSONRPC":
        routes += create_jsonrpc_routes(handler, "/a2a")
    else:
        routes += create_rest_routes(handler, path_prefix="/a2a")
    return Mount(f"/{name}", routes=routes)


def main():
    port = int(sys.argv[1])
    base = f"http://127.0.0.1:{port}"
    mounts = [
        mount(base, "jsonrpc-stream", "JSONRPC", True),
        mount(base, "jsonrpc-poll", "JSONRPC", False),
        mount(base, "rest-stream", "HTTP+JSON", True),
        mount(base, "rest-poll", "HTTP+JSON", False),
    ]
    uvicorn.run(Starlette(routes=mounts), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
