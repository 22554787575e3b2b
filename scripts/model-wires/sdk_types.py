"""The request types of the providers' SDKs, made strict: an unknown field is an error at every depth.

The SDKs describe requests with TypedDicts that allow unknown fields, declare lists as `Iterable` (whose items pydantic does not
validate) and allow the SDK's response objects, which accept any field. `closed` rebuilds a type without these three gaps.
"""

import json
import os
import types
import typing
import warnings
from collections.abc import Iterable, Mapping, Sequence

import anthropic.types.message_create_params as anthropic_params
import openai.types.chat.completion_create_params as chat_params
import openai.types.responses.response_create_params as responses_params
import pydantic
import typing_extensions as extensions
from google.genai import types as google
from mistralai.client import models as mistral

import rules
from replies import PROVIDERS

# Replaces types that JSON cannot have: objects of the SDK, files, and text that the SDK does not know.
NOTHING = object()
PLAIN = (str, int, float, bool, types.NoneType)
ALIAS = (extensions.TypeAliasType, getattr(typing, "TypeAliasType", extensions.TypeAliasType))
CLOSED = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def closed(annotation, additions=None, made=None):
    """Returns the same type with closed TypedDicts and real lists. `additions` maps the name of a TypedDict to additional
    fields, and to `None` for a field that does not exist on the wire."""
    made = {} if made is None else made
    additions = additions or {}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    inner = lambda one: closed(one, additions, made)  # noqa: E731
    if extensions.is_typeddict(annotation):
        return _closed_dict(annotation, additions, made)
    if origin is typing.Annotated:
        return inner(arguments[0])
    if origin in (extensions.Required, extensions.NotRequired, extensions.ReadOnly):
        return inner(arguments[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in map(inner, arguments) if member is not NOTHING]
        return typing.Union[tuple(members)] if members else NOTHING
    if isinstance(annotation, ALIAS):
        return inner(annotation.__value__)
    if isinstance(origin, ALIAS):
        return inner(origin.__value__[arguments])
    if origin in (list, Iterable, Sequence):
        return list[inner(arguments[0])]
    if origin in (dict, Mapping):
        return dict[arguments[0], inner(arguments[1])]
    if annotation in (object, dict, typing.Any):
        return typing.Any
    if annotation in PLAIN or origin is typing.Literal:
        return annotation
    if isinstance(annotation, type) or origin in (os.PathLike, typing.IO):
        return NOTHING
    raise TypeError(f"no rule closes {annotation!r}")


def _closed_dict(annotation, additions, made):
    if annotation in made:
        return made[annotation]
    name = annotation.__name__
    result = made[annotation] = extensions.TypedDict(name, {})
    fields = extensions.get_type_hints(annotation, include_extras=True)
    fields.update(additions.get(name, {}))
    fields = {field: hint for field, hint in fields.items() if hint is not None}
    # Filled after registering the type, because some types contain themselves.
    result.__annotations__ = {field: closed(hint, additions, made) for field, hint in fields.items()}
    if NOTHING in result.__annotations__.values():
        raise TypeError(f"{name} has a field that JSON cannot have")
    result.__required_keys__ = frozenset(field for field, hint in fields.items() if _is_required(annotation, field, hint))
    result.__optional_keys__ = frozenset(fields) - result.__required_keys__
    result.__pydantic_config__ = CLOSED
    return result


def _is_required(annotation, field, hint):
    """Returns whether a field is required. The marker decides, because a TypedDict with annotations as text ignores it."""
    origin = typing.get_origin(hint)
    if origin in (extensions.Required, extensions.NotRequired):
        return origin is extensions.Required
    return field in annotation.__required_keys__


class TypedDictCheck:
    """A check that a request fits one of several TypedDicts."""

    def __init__(self, *annotations, additions=None):
        self.adapter = pydantic.TypeAdapter(typing.Union[tuple(closed(one, additions) for one in annotations)])

    def problems(self, body):
        try:
            self.adapter.validate_python(body, strict=True)
        except pydantic.ValidationError as error:
            return _nearest(error.errors(include_url=False, include_input=False))
        return []


def _nearest(errors):
    """Selects the relevant errors. A union reports the errors of all its members; those below a wrong discriminator belong to
    other members."""
    wrong = {error["loc"][:-1] for error in errors if error["type"] == "literal_error"}
    ancestors = lambda place: {place[:end] for end in range(len(place))}  # noqa: E731
    relevant = [error for error in errors if not ancestors(error["loc"]) & wrong]
    deepest = sorted(relevant or errors, key=lambda error: -len(error["loc"]))
    places = [".".join(part if len(part) < 60 else "…" for part in map(str, error["loc"])) for error in deepest]
    return [f"{place}: {error['msg']}" for place, error in zip(places, deepest)][:5]


class GeminiRequest(pydantic.BaseModel):
    """The body of generateContent. The SDK has only the types of its fields, and assembles the body when it sends a request."""

    model_config = pydantic.ConfigDict(extra="forbid")
    contents: list[google.Content]
    systemInstruction: google.Content | None = None
    tools: list[google.Tool] | None = None
    toolConfig: google.ToolConfig | None = None
    safetySettings: list[google.SafetySetting] | None = None
    generationConfig: google.GenerationConfig | None = None
    cachedContent: str | None = None


class GeminiCheck:
    def problems(self, body):
        try:
            with warnings.catch_warnings():
                # The SDK only warns about unknown values of enumerations.
                warnings.simplefilter("error")
                GeminiRequest.model_validate_json(json.dumps(body))
        except pydantic.ValidationError as error:
            return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False, include_input=False)[:5]]
        except (UserWarning, AttributeError) as error:
            # The SDK's enumerations raise these for values that are not text.
            return [str(error)]
        return []


def _chat(**additions):
    return TypedDictCheck(
        chat_params.CompletionCreateParamsStreaming,
        chat_params.CompletionCreateParamsNonStreaming,
        additions={"ChatCompletionAssistantMessageParam": additions},
    )


# Mistral's TypedDicts have the names of the Python attributes instead of those on the wire.
MISTRAL_NAMES = {"JSONSchemaTypedDict": {"schema_definition": None, "schema": extensions.Required[dict[str, typing.Any]]}}

# The check of each provider. Fields beyond OpenAI's are those in the provider's documentation.
CHECKS = {
    "openai": _chat(),
    "deepseek": _chat(reasoning_content=str),
    "openrouter": _chat(reasoning=typing.Optional[str], reasoning_details=list[dict[str, typing.Any]]),
    "mistral": TypedDictCheck(mistral.ChatCompletionRequestTypedDict, additions=MISTRAL_NAMES),
    "responses": TypedDictCheck(responses_params.ResponseCreateParamsStreaming, responses_params.ResponseCreateParamsNonStreaming),
    "anthropic": TypedDictCheck(anthropic_params.MessageCreateParamsStreaming, anthropic_params.MessageCreateParamsNonStreaming),
    "gemini": GeminiCheck(),
}


def problems(provider, body):
    """Returns the problems for which a provider would refuse a request: by its types, and by other rules."""
    found = CHECKS[provider].problems(body)
    try:
        return [*found, *rules.problems(provider, PROVIDERS[provider], body)]
    except (KeyError, TypeError, AttributeError):
        # The rules can only be checked if the request fits the types.
        if not found:
            raise
        return found
