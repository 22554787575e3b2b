"""Tests `/v1/` with the official client for Python. Started by scripts/api-clients."""
import json
import os
import urllib.request

import openai

URL = os.environ["CLIENTS_URL"]
TOKEN = os.environ["CLIENTS_TOKEN"]
client = openai.OpenAI(base_url=f"{URL}/v1", api_key=TOKEN)
ASK = "create todo.txt with the words \"milk and bread\""


def check(name):
    def run(body):
        try:
            body()
            print(f"ok openai for Python {openai.__version__}: {name}", flush=True)
        except Exception as error:  # A check may fail in any way.
            print(f"FAILED openai for Python: {name}: {type(error).__name__}: {error}", flush=True)
    return run


def chat(text, **more):
    return client.chat.completions.create(model="lango", messages=[{"role": "user", "content": text}], **more)


def deny(approval):
    """Denies an approval request, so that the session can continue."""
    request = urllib.request.Request(
        f"{URL}/api/approvals/{approval}", data=json.dumps({"answer": "no"}).encode(),
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"})
    assert urllib.request.urlopen(request).status == 202


def expect_refusal(kind, body, code=None):
    try:
        body()
    except kind as error:
        assert error.body["message"], error.body
        assert code is None or error.code == code, (error.code, code)
        return error
    raise AssertionError(f"the request was not refused with {kind.__name__}")


@check("lists models")
def _():
    ids = [model.id for model in client.models.list()]
    assert "lango" in ids and "offline/rules" in ids, ids
    assert client.models.retrieve("lango").owned_by == "lango"
    assert client.models.retrieve("offline/rules").id == "offline/rules"


@check("chat, whole")
def _():
    completion = chat("hello")
    assert completion.choices[0].message.content.startswith("Hello!"), completion
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None


@check("chat with another model and tuning parameters")
def _():
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "what files are here?"}]
    completion = client.chat.completions.create(
        model="offline/rules", messages=messages, temperature=0.2, max_tokens=50, seed=1, user="me", stop=["x"])
    assert completion.model == "offline/rules"
    assert completion.choices[0].message.content


@check("chat, streamed, with usage")
def _():
    chunks = list(chat("hello", stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.startswith("Hello!"), text
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None


@check("chat, streamed with the helper")
def _():
    messages = [{"role": "user", "content": "what files are here?"}]
    with client.chat.completions.stream(model="lango", messages=messages) as stream:
        for _event in stream:
            pass
        content = stream.get_final_completion().choices[0].message.content
    assert "notes.txt" in content, content


@check("a session continues by its header")
def _():
    headers = {"X-Lango-Session": "python-chat"}
    first = client.chat.completions.with_raw_response.create(
        model="lango", messages=[{"role": "user", "content": "hello"}], extra_headers=headers)
    session = first.headers["x-lango-session"]
    answer = first.parse().choices[0].message.content
    messages = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": answer},
                {"role": "user", "content": "what files are here?"}]
    for name in ["python-chat", session]:
        again = client.chat.completions.with_raw_response.create(
            model="lango", messages=messages, extra_headers={"X-Lango-Session": name})
        assert again.headers["x-lango-session"] == session
        assert "notes.txt" in again.parse().choices[0].message.content


@check("a pending approval ends a completion with its id")
def _():
    for is_streamed in [False, True]:
        if is_streamed:
            chunks = list(chat(ASK, stream=True))
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            last = chunks[-1]
        else:
            last = chat(ASK)
            text = last.choices[0].message.content
        [approval] = last.model_extra["lango"]["approvals"]
        assert approval in text and "fs_write" in text, text
        assert last.choices[0].finish_reason == "stop"
        deny(approval)


@check("responses, whole")
def _():
    response = client.responses.create(model="lango", input="hello")
    assert response.status == "completed"
    assert response.output_text.startswith("Hello!"), response.output_text
    assert response.usage.total_tokens >= 0


@check("responses with instructions and a list of messages")
def _():
    items = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello!"},
             {"role": "user", "content": [{"type": "input_text", "text": "what files are here?"}]}]
    response = client.responses.create(model="lango", input=items, instructions="Be brief.")
    # The demo model ignores the context, so it may answer that no rule matches.
    assert response.status == "completed" and response.output_text


@check("responses, streamed")
def _():
    events = list(client.responses.create(model="lango", input="hello", stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert events[0].type == "response.created" and events[-1].type == "response.completed"
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == events[-1].response.output_text and text.startswith("Hello!")


@check("responses, streamed with the helper")
def _():
    with client.responses.stream(model="lango", input="what files are here?") as stream:
        for _event in stream:
            pass
        response = stream.get_final_response()
    assert "notes.txt" in response.output_text


@check("responses continue by conversation and previous_response_id")
def _():
    first = client.responses.create(model="lango", input="hello", conversation="python-responses")
    for more in [{"conversation": "python-responses"}, {"conversation": first.conversation.id},
                 {"previous_response_id": first.id}]:
        response = client.responses.create(model="lango", input="what files are here?", **more)
        assert response.conversation.id == first.conversation.id
        assert "notes.txt" in response.output_text


@check("a pending approval makes a response incomplete")
def _():
    response = client.responses.create(model="lango", input=ASK)
    assert response.status == "incomplete", response.status
    [approval] = response.model_extra["lango"]["approvals"]
    assert response.metadata["lango_approvals"] == approval and approval in response.output_text
    deny(approval)
    events = list(client.responses.create(model="lango", input=ASK, stream=True))
    assert events[-1].type == "response.incomplete"
    deny(events[-1].response.model_extra["lango"]["approvals"][0])


@check("errors have the client's own types")
def _():
    hi = [{"role": "user", "content": "hi"}]
    stranger = openai.OpenAI(base_url=f"{URL}/v1", api_key="wrong")
    expect_refusal(openai.AuthenticationError, lambda: stranger.models.list(), "invalid_api_key")
    runner = openai.OpenAI(base_url=f"{URL}/v1", api_key=os.environ["CLIENTS_RUN_TOKEN"])
    error = expect_refusal(openai.PermissionDeniedError, lambda: runner.models.list())
    assert "read" in error.body["message"]
    create = client.chat.completions.create
    expect_refusal(openai.NotFoundError, lambda: create(model="gpt-9", messages=hi), "model_not_found")
    expect_refusal(openai.NotFoundError, lambda: client.embeddings.create(model="lango", input="hi"))
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    error = expect_refusal(openai.BadRequestError, lambda: create(model="lango", messages=hi, tools=tools))
    assert "own tools" in error.body["message"] and error.param == "tools"
    expect_refusal(openai.BadRequestError, lambda: create(model="lango", messages=hi, n=2))
    expect_refusal(openai.BadRequestError, lambda: client.responses.create(model="lango", input="hi", background=True))
    expect_refusal(openai.BadRequestError, lambda: client.responses.create(
        model="lango", input="hi", tools=[{"type": "web_search"}]))
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    expect_refusal(openai.BadRequestError, lambda: create(model="lango", messages=[{"role": "user", "content": [image]}]))


@check("a session that waits for an approval is a conflict, which the client does not retry")
def _():
    first = client.chat.completions.with_raw_response.create(model="lango", messages=[{"role": "user", "content": ASK}])
    [approval] = first.parse().model_extra["lango"]["approvals"]
    headers = {"X-Lango-Session": first.headers["x-lango-session"]}
    error = expect_refusal(openai.ConflictError, lambda: chat("hello", extra_headers=headers))
    assert error.response.request.headers.get("x-stainless-retry-count") == "0"
    assert approval in error.body["message"]
    deny(approval)


print("end of openai for Python", flush=True)
