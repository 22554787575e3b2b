"""Calls `lango serve` with the A2A client of Google's ADK, `RemoteA2aAgent`, and checks its session afterwards.

    adk_try_server.py BASE_URL TOKEN_FILE
"""

import asyncio
import sys

import httpx
from a2a.client import ClientConfig
from a2a.client.client_factory import ClientFactory
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from model import ANSWER

VARIANTS = [
    (binding, streaming, legacy)
    for binding in ("JSONRPC", "HTTP+JSON")
    for streaming in (True, False)
    for legacy in (True, False)
]


async def try_one(base, token, binding, streaming, legacy):
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as http:
        config = ClientConfig(
            httpx_client=http, streaming=streaming, polling=False, supported_protocol_bindings=[binding]
        )
        agent = RemoteA2aAgent(
            name="lango",
            agent_card=f"{base}/.well-known/agent-card.json",
            a2a_client_factory=ClientFactory(config=config),
            use_legacy=legacy,
        )
        sessions = InMemorySessionService()
        runner = Runner(app_name="interop", agent=agent, session_service=sessions)
        session = await sessions.create_session(app_name="interop", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="say the words")])
        chunks = 0
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            chunks += event.partial is True
            if event.error_message:
                return {f"no error ({event.error_message})": False}
        stored = await sessions.get_session(app_name="interop", user_id="u", session_id=session.id)

    def text(event):
        parts = event.content.parts if event.content else []
        return "".join(part.text for part in parts or [] if part.text and not part.thought)

    answers = [text(event) for event in stored.events if event.author == "lango" and text(event)]
    return {
        "the answer is complete in the session": bool(answers) and answers[-1] == ANSWER,
        "the session has the answer once": "".join(answers) == ANSWER,
        **({"the answer arrived in chunks": chunks > 1} if streaming else {}),
    }


async def main():
    base, token_file = sys.argv[1:]
    token = open(token_file).read().strip()
    wrong = 0
    for binding, streaming, legacy in VARIANTS:
        checks = await try_one(base, token, binding, streaming, legacy)
        variant = f"{binding}, {'streamed' if streaming else 'not streamed'}, {'legacy' if legacy else 'new'} executor"
        for check, is_ok in checks.items():
            print(f"{'ok  ' if is_ok else 'OFF '} {variant}: {check}")
            wrong += not is_ok
    sys.exit(f"{wrong} checks failed" if wrong else 0)


asyncio.run(main())
