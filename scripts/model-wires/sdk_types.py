"""The request types of the providers' own SDKs, closed: a field that a type does not have is an error, at every depth.

The SDKs describe requests with TypedDicts that are open, hold lists as `Iterable` (which pydantic does not look into) and allow
the SDK's response objects, which take any field, inside of requests. `closed` rebuilds such a type without these three holes.
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

# In place of a type that no JSON has: objects of the SDK, files, text that the SDK does not know.
NOTHING = object()
PLAIN = (str, int, float, bool, types.NoneType)
ALIAS = (extensions.TypeAliasType, getattr(typing, "TypeAliasType", extensions.TypeAliasType))
CLOSED = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=True)


def closed(annotation, additions=None, made=None):
    """The same type with closed TypedDicts and real lists. `additions` maps the name of a TypedDict to more fields of it,
    and to `None` for a field that it does not have on the wire."""
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
    # Filled after it is known, since some types contain themselves.
    result.__annotations__ = {field: closed(hint, additions, made) for field, hint in fields.items()}
    if NOTHING in result.__annotations__.values():
        raise TypeError(f"{name} has a field that no JSON fits")
    result.__required_keys__ = frozenset(field for field, hint in fields.items() if _is_required(annotation, field, hint))
    result.__optional_keys__ = frozenset(fields) - result.__required_keys__
    result.__pydantic_config__ = CLOSED
    return result


def _is_required(annotation, field, hint):
    """The marker decides: where annotations are text, a TypedDict does not see it."""
    origin = typing.get_origin(hint)
    if origin in (extensions.Required, extensions.NotRequired):
        return origin is extensions.Required
    return field in annotation.__required_keys__


class TypedDictCheck:
    """Checks a request against TypedDicts, of which it has to fit one."""

    def __init__(self, *annotations, additions=None):
        self.adapter = pydantic.TypeAdapter(typing.Union[tuple(closed(one, additions) for one in annotations)])

    def problems(self, body):
        try:
            self.adapter.validate_python(body, strict=True)
        except pydantic.ValidationError as error:
            return _nearest(error.errors(include_url=False, include_input=False))
        return []


def _nearest(errors):
    """A union reports the errors of all its members; those below a wrong discriminator belong to members that were not meant."""
    wrong = {error["loc"][:-1] for error in errors if error["type"] == "literal_error"}
    ancestors = lambda place: {place[:end] for end in range(len(place))}  # noqa: E731
    meant = [error for error in errors if not ancestors(error["loc"]) & wrong]
    deepest = sorted(meant or errors, key=lambda error: -len(error["loc"]))
    places = [".".join(part if len(part) < 60 else "…" for part in map(str, error["loc"])) for error in deepest]
    return [f"{place}: {error['msg']}" for place, error in zip(places, deepest)][:5]


class GeminiRequest(pydantic.BaseModel):
    """The body of generateContent: the SDK has the types of its fields, and spreads them over the body when it sends them."""

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
                # The SDK only warns of an unknown value of an enumeration.
                warnings.simplefilter("error")
                GeminiRequest.model_validate_json(json.dumps(body))
        except pydantic.ValidationError as error:
            return [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False, include_input=False)[:5]]
        except (UserWarning, AttributeError) as error:
            # Enumerations of the SDK fail so on values that are not text.
            return [str(error)]
        return []


def _chat(**additions):
    return TypedDictCheck(
        chat_params.CompletionCreateParamsStreaming,
        chat_params.CompletionCreateParamsNonStreaming,
        additions={"ChatCompletionAssistantMessageParam": additions},
    )


# Mistral's TypedDicts have the names of Python's attributes.
MISTRAL_NAMES = {"JSONSchemaTypedDict": {"schema_definition": None, "schema": extensions.Required[dict[str, typing.Any]]}}

# By provider. Fields beyond OpenAI's are those that the provider's own documentation has.
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
    """What the provider would refuse: by its types, and by the rules beside them."""
    found = CHECKS[provider].problems(body)
    try:
        return [*found, *rules.problems(provider, PROVIDERS[provider], body)]
    except (KeyError, TypeError, AttributeError):
        # The rules can only read what fits the types.
        if not found:
            raise
        return found
