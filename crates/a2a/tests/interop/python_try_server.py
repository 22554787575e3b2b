"""Calls `lango serve` with the client of the Python SDK, over both bindings, with and without streaming, and checks the results.

    python_try_server.py BASE_URL TOKEN_FILE
"""

import asyncio
import sys
import uuid

import httpx
from a2a.client import ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)

VARIANTS = [
    (binding, streaming) for binding in ("JSONRPC", "HTTP+JSON") for streaming in (True, False)
]


def message(text, context=None):
    message = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=[Part(text=text)])
    if context:
        message.context_id = context
    return SendMessageRequest(message=message)


def artifact_text(artifacts):
    return "".join(part.text for artifact in artifacts for part in artifact.parts)


async def last_task(client, request):
    """Sends a message. Returns the task after the last event, and the number of events."""
    events, task = 0, None
    stream = client.send_message(request)
    async for event in stream:
        events += 1
        for kind in ("task", "status_update", "artifact_update"):
            if event.HasField(kind):
                part = getattr(event, kind)
                task = part.id if kind == "task" else part.task_id
        # The stream would stay open until a local user approves the call.
        if event.status_update.status.state == TaskState.TASK_STATE_AUTH_REQUIRED:
            await stream.aclose()
            break
    return await client.get_task(GetTaskRequest(id=task)), events


async def try_one(base, token, binding, streaming):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        config = ClientConfig(
            streaming=streaming, httpx_client=http, supported_protocol_bindings=[binding]
        )
        client = await create_client(base, config)
        checks = {}

        task, events = await last_task(client, message("what files are here?"))
        checks["the agent used a tool"] = (
            task.status.state == TaskState.TASK_STATE_COMPLETED and "notes.md" in artifact_text(task.artifacts)
        )
        checks["the client received events"] = events > 1 if streaming else events >= 1

        raw = message("")
        del raw.message.parts[:]
        raw.message.parts.append(Part(raw=b"what files are here?", media_type="text/plain"))
        read, _ = await last_task(client, raw)
        checks["a text sent as bytes is read"] = "notes.md" in artifact_text(read.artifacts)

        again, _ = await last_task(client, message("hello", task.context_id))
        checks["a conversation can continue"] = again.context_id == task.context_id and again.id != task.id

        waiting, _ = await last_task(client, message("create notes/a.md with the word hi"))
        checks["a call that needs approval waits"] = (
            waiting.status.state == TaskState.TASK_STATE_AUTH_REQUIRED
            and "lango approvals answer" in waiting.status.message.parts[0].text
        )
        if streaming:
            stream = client.subscribe(SubscribeToTaskRequest(id=waiting.id))
            first = await anext(stream)
            checks["a client can subscribe to a waiting task"] = first.task.id == waiting.id
            await stream.aclose()
        stopped = await client.cancel_task(CancelTaskRequest(id=waiting.id))
        checks["a waiting task can be cancelled"] = stopped.status.state == TaskState.TASK_STATE_CANCELED

        page = await client.list_tasks(ListTasksRequest(page_size=2))
        rest = await client.list_tasks(ListTasksRequest(page_size=2, page_token=page.next_page_token))
        ids = {task.id for task in [*page.tasks, *rest.tasks]}
        checks["tasks are listed page by page"] = len(page.tasks) == 2 and len(ids) == 2 + len(rest.tasks)

        try:
            await client.get_task(GetTaskRequest(id="nobody"))
            checks["an unknown task is an error"] = False
        except Exception as error:  # the SDK has a class for each error
            checks["an unknown task is an error"] = "TaskNotFound" in type(error).__name__
        return checks


async def main():
    base, token_file = sys.argv[1:]
    token = open(token_file).read().strip()
    wrong = 0
    for binding, streaming in VARIANTS:
        checks = await try_one(base, token, binding, streaming)
        variant = f"{binding}, {'streamed' if streaming else 'not streamed'}"
        for check, is_ok in checks.items():
            print(f"{'ok  ' if is_ok else 'OFF '} {variant}: {check}")
            wrong += not is_ok
    sys.exit(f"{wrong} checks failed" if wrong else 0)


asyncio.run(main())
