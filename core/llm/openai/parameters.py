"""The parameters of a call, and those a server turns out not to accept."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from core.llm.openai.replies import ServerError
from core.llm.types import Request

_OTHER_NAME = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_OPTIONAL = ("temperature", "top_p", "seed", "top_logprobs", "logprobs", "response_format", *_OTHER_NAME)
_NOT_TAKEN = re.compile(
    r"unsupported|not[ _]support|n't support|unknown|unrecogni[sz]ed|unexpected|not permitted|not allowed"
    r"|extra[ _](input|field|forbidden)|not implemented|unavailable|not available|incompatible|deprecated",
    re.IGNORECASE,
)
_FORMAT_WORDS = re.compile(r"response_format|json_?\W?schema|json_object|grammar|\bschema\b", re.IGNORECASE)
_OF_THIS_SCHEMA = re.compile(
    r"invalid_?\W?(json_?\W?)?schema|grammar|parser|must contain the word|at #", re.I
)
_OUT_OF_RANGE = re.compile(
    r"too (large|small|high|low)|at (most|least)|must be|between|out of range|(above|below) m|[<>]=?\s*\d",
    re.I,
)
_SCHEMA, _OBJECT, _FREE = range(3)  # how an answer is constrained: by its schema, to any object, not at all


class Parameters:
    """Which parameters one server and model accept, learned from refusals; used on one event loop."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self._limit = "max_tokens"
        self._format = _SCHEMA
        self._formats: dict[str, int] = {}

    @property
    def json_schema(self) -> bool:
        """Whether the server follows a schema, as far as known."""
        return self._format == _SCHEMA

    def body(self, request: Request) -> dict[str, Any]:
        """Return the parameters of a call, without model and messages."""
        wanted: dict[str, Any] = {"temperature": request.temperature, "seed": request.seed}
        if request.temperature > 0:
            # Also when it is 1: some servers have another default.
            wanted["top_p"] = request.top_p
        if request.logprobs:
            # One alternative is the minimum that all servers accept; without it some send twenty.
            wanted |= {"logprobs": True, "top_logprobs": 1}
        if request.schema is not None and (response_format := self._response_format(request.schema)):
            wanted["response_format"] = response_format
        body = {name: value for name, value in wanted.items() if name not in self.refused}
        return body | {self._limit: request.max_tokens}

    def learn(self, error: ServerError, sent: Mapping[str, Any], request: Request) -> bool:
        """Note the parameter, of those ``sent``, that an error names; tell whether to ask again."""
        name = _named(error, sent)
        if name is None:
            return False
        if name == "response_format":
            self._lower_format(error, sent[name]["type"], request)
        elif name in _OTHER_NAME:
            if _OTHER_NAME[name] in self.refused:
                return False
            self._limit = _OTHER_NAME[name]
            self.refused.add(name)
        else:
            self.refused |= {name} | ({"top_logprobs"} if name == "logprobs" else set())
        return True

    def notes(self) -> tuple[str, ...]:
        """Say which refusals affect answers."""
        sampling = sorted(self.refused & {"temperature", "top_p", "seed"})
        if not sampling:
            return ()
        return (f"The server does not accept {', '.join(sampling)}: its own setting was used instead.",)

    def _response_format(self, schema: str) -> dict[str, Any] | None:
        level = max(self._format, self._formats.get(schema, _SCHEMA))
        if level == _SCHEMA:
            named = {"name": "answer", "strict": True, "schema": json.loads(schema)}
            return {"type": "json_schema", "json_schema": named}
        return {"type": "json_object"} if level == _OBJECT else None

    def _lower_format(self, error: ServerError, refused: str, request: Request) -> None:
        level = _OBJECT if refused == "json_schema" else _FREE
        if _OF_THIS_SCHEMA.search(error.text) and request.schema is not None:
            self._formats[request.schema] = max(level, self._formats.get(request.schema, _SCHEMA))
        else:
            self._format = max(level, self._format)


def _named(error: ServerError, sent: Mapping[str, Any]) -> str | None:
    """Return the sent optional parameter that the server does not accept."""
    if error.status not in (400, 422, 501):
        return None
    about_format = error.param.startswith("response_format") or _FORMAT_WORDS.search(error.message)
    if "response_format" in sent and about_format:
        return "response_format"
    if not _NOT_TAKEN.search(error.text):
        return None
    if _OUT_OF_RANGE.search(error.message) and "unsupported" not in error.code:
        return None  # the value is wrong, not the parameter
    root = re.split(r"[.\[]", error.param)[0]
    if root in sent and root in _OPTIONAL:
        return root
    named = {name: re.search(rf"(?<!\w){name}(?!\w)", error.message) for name in _OPTIONAL if name in sent}
    places = {name: match.start() for name, match in named.items() if match}
    return min(places, key=places.__getitem__, default=None)
