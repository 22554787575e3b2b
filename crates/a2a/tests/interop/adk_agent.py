"""An agent of Google's ADK with a scripted model, served by ADK's `to_a2a`, to test lango's client.

    adk_agent.py PORT STREAMING

STREAMING is `true` or `false`: whether the card announces streaming.
"""

import sys

import uvicorn
from a2a.types import AgentCapabilities
from google.adk.a2a.utils.agent_card_builder import AgentCardBuilder
from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class ScriptedModel(BaseLlm):
    """Repeats the last text of the request, in chunks if the request is streamed."""

    async def generate_content_async(self, llm_request, stream=False):
        texts = [part.text for content in llm_request.contents for part in content.parts or [] if part.text]
        answer = f"adk heard: {texts[-1]}"

        def response(text, **more):
            return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]), **more)

        if stream:
            for word in answer.split(" "):
                yield response(f"{word} ", partial=True)
        yield response(answer)


def main():
    port, streaming = int(sys.argv[1]), sys.argv[2] == "true"
    agent = LlmAgent(name="adk_agent", model=ScriptedModel(model="scripted"), description="Repeats what it hears.")
    card = None
    if not streaming:
        import asyncio

        builder = AgentCardBuilder(
            agent=agent, rpc_url=f"http://127.0.0.1:{port}/", capabilities=AgentCapabilities(streaming=False)
        )
        card = asyncio.run(builder.build())
    app = to_a2a(agent, host="127.0.0.1", port=port, agent_card=card)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main()
