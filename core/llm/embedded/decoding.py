"""How tokens are chosen, kept to a JSON Schema if asked, and where an answer ends."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import InputError
from core.llm.embedded.loading import special_tokens
from core.llm.embedded.scoring import Recorder
from core.llm.remote import cut_at_stop, first_stop
from core.llm.types import Completion, IsCancelled, Request, stop_if

_KEPT = 8  # compiled schemas
# The automaton is that of outlines-core. Its logits processors need a compiler on the user's machine, take
# one schema for a whole batch, let control tokens into strings, and lose parts of characters.


class Grammars:
    """The schemas compiled for one model, the last few kept; ``end`` is the token that ends an answer.

    Compiling takes 0.03 to 0.3 s. Numeric bounds and the like are left to the validation of the reply.
    """

    def __init__(self, tokenizer: Any, end: int | None) -> None:
        self._tokenizer = tokenizer
        self._end = end
        self._tokens: Any = None
        self._compiled: OrderedDict[str, Any] = OrderedDict()

    def guide(self, schema: str) -> Guided:
        """Return a fresh automaton for one answer; `InputError` where the schema cannot be compiled."""
        if self._end is None:
            raise _uncompilable("the model has no token that ends an answer")
        if schema not in self._compiled:
            self._compiled[schema] = self._compile(schema)
            if len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(schema)
        from outlines_core import Guide

        return Guided(Guide(self._compiled[schema]), self._end)

    def _compile(self, schema: str) -> Any:
        from outlines_core import Index, Vocabulary
        from outlines_core.json_schema import build_regex_from_schema

        if self._tokens is None:
            self._tokens = Vocabulary(self._end, token_bytes(self._tokenizer))
        try:
            return Index(build_regex_from_schema(schema), self._tokens)
        except Exception as error:  # outlines-core raises several kinds, for schema, pattern and vocabulary
            raise _uncompilable(str(error).strip().split("\n")[0] or type(error).__name__) from error


class Guided:
    """The state of one answer in its automaton."""

    def __init__(self, guide: Any, end: int) -> None:
        self._guide = guide
        self._end = end
        self.complete = False

    def allowed(self, width: int) -> NDArray[np.bool_]:
        """Return which of the model's ``width`` tokens may come next."""
        words = np.zeros((width + 31) // 32, dtype=np.int32)
        if not self.complete:
            self._guide.write_mask_into(words.ctypes.data, words.size, words.itemsize)
        allowed = np.unpackbits(words.view(np.uint8), bitorder="little")[:width].astype(bool)
        if not allowed.any():  # complete, or a vocabulary that cannot spell what must follow
            allowed[self._end] = True
        return allowed

    def advance(self, token: int) -> None:
        """Take the chosen token; ``complete`` becomes true once nothing can follow."""
        if self.complete or token == self._end:
            self.complete = True
            return
        self._guide.advance(token, return_tokens=False)
        self.complete = self._guide.is_finished() and set(self._guide.get_tokens()) <= {self._end}


class SchemaMask:
    """Logits processor: excludes every token that a row's automaton forbids."""

    def __init__(self, guides: Sequence[Guided | None]) -> None:
        self._guides = guides

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """Return the scores, -inf where a token is forbidden."""
        import torch

        scores = scores.clone()
        for row, guide in enumerate(self._guides):
            if guide is not None:
                allowed = torch.from_numpy(guide.allowed(scores.shape[-1])).to(scores.device)
                scores[row] = scores[row].masked_fill(~allowed, float("-inf"))
        return scores


def token_bytes(tokenizer: Any) -> dict[bytes, list[int]]:
    """Return the bytes, not letters, that each token adds to a text; control tokens are left out."""
    specials = special_tokens(tokenizer)
    spell = _token_speller(tokenizer)
    found: dict[bytes, list[int]] = {}
    for token, number in tokenizer.get_vocab().items():
        spelled = b"" if token in specials else spell(token)
        if spelled:
            found.setdefault(spelled, []).append(number)
    return found


def _token_speller(tokenizer: Any) -> Callable[[str], bytes]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = json.dumps(json.loads(backend.to_str())["decoder"]) if backend is not None else ""
    if '"ByteLevel"' not in decoder:
        return _piece
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    added = {str(token) for token in tokenizer.added_tokens_decoder.values()}
    byte = {character: value for value, character in bytes_to_unicode().items()}

    def byte_level(token: str) -> bytes:
        if token in added or not byte.keys() >= set(token):
            return token.encode()
        return bytes(byte[character] for character in token)

    return byte_level


def _piece(token: str) -> bytes:
    """Spell a token of the SentencePiece family: a low line block is a space, <0x0A> a single byte."""
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes.fromhex(token[3:5])
    return token.replace("\u2581", " ").encode()


def _uncompilable(why: str) -> InputError:
    return InputError(f"The model cannot be kept to this JSON Schema: {why[:300].rstrip(' .')}.")


def stop_sequences(request: Request) -> tuple[str, ...]:
    """Return the stop sequences that apply; JSON under a schema ends where the schema ends it."""
    return request.stop if request.schema is None else ()


def generation_config(model: Any, max_tokens: int, pad: int) -> Any:
    """Return greedy settings without the model's own additions."""
    from transformers import GenerationConfig

    return GenerationConfig(
        max_new_tokens=max_tokens,
        do_sample=False,
        eos_token_id=model.generation_config.eos_token_id,
        pad_token_id=pad,
    )


def logits_processors(
    requests: Sequence[Request],
    guides: Sequence[Guided | None],
    recorder: Recorder | None,
    word_first: WordFirst | None,
) -> Any:
    """Return the processors of the scores before a token is chosen: record, forbid, sample."""
    from transformers import LogitsProcessorList

    chosen: list[Any] = [recorder] if recorder is not None else []
    if any(guides):
        chosen.append(SchemaMask(guides))
    if word_first is not None:
        chosen.append(word_first)
    if any(request.temperature > 0 for request in requests):
        chosen.append(SeededSampling(requests))
    return LogitsProcessorList(chosen)


def to_completion(
    tokenizer: Any,
    request: Request,
    row: list[int],
    ends: Collection[int],
    length: int | None,
    logprobs: Sequence[float] | None,
) -> Completion:
    """Return the answer in one row of tokens, without the prompt's size and the latency.

    ``length`` None: `Ending` did not end it; what follows one of ``ends`` is padding.
    """
    tokens = row[:length]
    ended = next((i for i, token in enumerate(tokens) if token in ends), None)
    tokens = tokens[:ended]
    text, stopped = cut_at_stop(tokenizer.decode(tokens, skip_special_tokens=True), stop_sequences(request))
    reason = "length" if length is None and ended is None and not stopped else "stop"
    kept = None if logprobs is None else logprobs[: _text_tokens(tokenizer, tokens, stop_sequences(request))]
    return Completion(text, reason, 0, len(tokens), 0.0, None if kept is None else tuple(kept))


def _text_tokens(tokenizer: Any, tokens: list[int], stop: Sequence[str]) -> int:
    """Count the tokens that begin before the first stop sequence."""

    def text(n: int) -> str:
        return str(tokenizer.decode(tokens[:n], skip_special_tokens=True)).lstrip()

    n = len(tokens)
    end = first_stop(text(n), stop)
    while end is not None and n > 0 and len(text(n - 1)) >= end:
        n -= 1
    return n


class Ending:
    """Stopping criterion: ends each row at its stop sequences or schema, after ``lengths`` tokens."""

    def __init__(
        self,
        tokenizer: Any,
        requests: Sequence[Request],
        guides: Sequence[Guided | None],
        width: int,
        cancelled: IsCancelled | None = None,
    ) -> None:
        self.lengths: list[int | None] = [None] * len(requests)
        self._tokenizer, self._guides, self._width = tokenizer, guides, width
        self._stops = [request.stop for request in requests]
        self._cancelled = cancelled

    def __call__(self, input_ids: Any, _scores: Any, **_: Any) -> Any:
        """Return which rows have ended."""
        import torch

        stop_if(self._cancelled)
        for row, tokens in enumerate(input_ids[:, self._width :].tolist()):
            if self.lengths[row] is None and self._has_ended(row, tokens):
                self.lengths[row] = len(tokens)
        ended = [length is not None for length in self.lengths]
        return torch.tensor(ended, device=input_ids.device)

    def _has_ended(self, row: int, tokens: list[int]) -> bool:
        guide = self._guides[row]
        if guide is not None:
            guide.advance(tokens[-1])
            return guide.complete
        stop = self._stops[row]
        return bool(stop) and cut_at_stop(self._tokenizer.decode(tokens, skip_special_tokens=True), stop)[1]


class Beginnings:
    """Which tokens may begin an answer, hold (part of) a word, or a colon and a line break (``leads``)."""

    def __init__(self, tokenizer: Any) -> None:
        spelled = token_bytes(tokenizer)
        most = max((number for numbers in spelled.values() for number in numbers), default=-1)
        self.first, self.word, self.leads = np.zeros((3, most + 1), dtype=bool)
        for letters, numbers in spelled.items():
            if not _LINE_BREAKS.intersection(letters):
                self.first[numbers] = True
                self.word[numbers] = has_word(letters)
            self.leads[numbers] = _LEAD.search(letters) is not None


_LINE_BREAKS = frozenset(b"\n\r")
_LEAD = re.compile(rb":[ \t]*[\n\r]")


def has_word(text: str | bytes) -> bool:
    """Tell whether there is a letter or a digit in a text, or part of a character in bytes."""
    try:
        return any(map(str.isalnum, text.decode() if isinstance(text, bytes) else text))
    except UnicodeDecodeError:
        return True


class WordFirst:
    """Logits processor: until an answer has a word, it neither ends nor breaks the line.

    Small models often end their turn at once where a question is not put as they know it. From the second
    token on only a word can come, so that one mark before it (a quote, a currency) is possible and a row of
    marks is not. Where a line break ends the answer, neither comes behind a colon. Answers under a schema are
    left to it.
    """

    def __init__(
        self, beginnings: Beginnings, tokenizer: Any, requests: Sequence[Request], width: int
    ) -> None:
        self._beginnings, self._tokenizer, self._width = beginnings, tokenizer, width
        self._waiting = {row: r for row, r in enumerate(requests) if r.schema is None}

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores, -inf for the tokens that cannot come next."""
        import torch

        said = input_ids[:, self._width :].tolist()
        scores = scores.clone()
        for row, request in list(self._waiting.items()):
            text = self._tokenizer.decode(said[row])
            if not has_word(text):
                single = bool(said[row]) or request.max_tokens == 1
                known, beyond = self._beginnings.word if single else self._beginnings.first, False
            elif "\n" not in request.stop:
                del self._waiting[row]
                continue
            elif text.rstrip().endswith(":"):
                known, beyond = self._beginnings.first, False
            else:
                known, beyond = ~self._beginnings.leads, True
            allowed = np.full(scores.shape[-1], beyond)
            allowed[: known.size] = known[: allowed.size]
            if allowed.any():
                forbidden = torch.from_numpy(~allowed).to(scores.device)
                scores[row] = scores[row].masked_fill(forbidden, float("-inf"))
        return scores


class SeededSampling:
    """Logits processor, the last one: a Gumbel draw for each row, with a seeded generator of its own."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self._rows = [(request, np.random.default_rng(request.seed)) for request in requests]

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        """Return the scores with their noise."""
        import torch

        scores = scores.clone()
        for row, (request, generator) in enumerate(self._rows):
            if request.temperature > 0:
                logits = scores[row].float().cpu().numpy().astype(np.float64)
                noisy = gumbel_scores(logits, request.temperature, request.top_p, generator)
                scores[row] = torch.from_numpy(noisy).to(scores)
        return scores


def gumbel_scores(
    logits: NDArray[np.float64], temperature: float, top_p: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Return scores whose largest is a draw from softmax(logits / temperature), cut to the nucleus."""
    scaled = logits / temperature
    noise = generator.gumbel(size=scaled.size)
    if top_p < 1:
        order = np.argsort(-scaled, kind="stable")
        weights = np.exp(scaled[order] - scaled[order[0]])
        before = np.cumsum(weights) - weights
        scaled[order[before >= top_p * weights.sum()]] = -np.inf
    return scaled + noise
