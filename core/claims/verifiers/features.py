"""What can be measured between a claim and a passage without a language model."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.claims.types import ClaimGroup, Floats, Ints
from core.claims.verifiers.checks import CHECKS
from core.llm.embeddings import RememberingEmbedder, SentenceEmbedder, TokenVectors, shared_embedder
from core.text.sentences import sentence_spans
from core.text.words import has_words

_MOST_BYTES = 256 * 2**20
TokenReader = SentenceEmbedder | RememberingEmbedder


class VectorMemory:
    """Turns texts into token vectors and keeps those used last, up to ``most_bytes``."""

    def __init__(self, embedder: TokenReader | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._embedder = embedder or shared_embedder()
        self._most = most_bytes
        self._kept: OrderedDict[str, TokenVectors] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def vectors(self, texts: Iterable[str]) -> dict[str, TokenVectors]:
        """Return the token vectors of texts; all that are new are read in one go."""
        wanted = list(dict.fromkeys(texts))
        found = {}
        with self._lock:
            fresh = self._read([text for text in wanted if text not in self._kept])
            self._size += sum(map(_bytes, fresh.values()))
            for text in wanted:
                self._kept[text] = found[text] = fresh.get(text) or self._kept.pop(text)
            while self._size > self._most and self._kept:
                self._size -= _bytes(self._kept.popitem(last=False)[1])
        return found

    def _read(self, texts: Sequence[str]) -> dict[str, TokenVectors]:
        read = self._embedder.embed_tokens(texts) if texts else []
        assert read is not None, "the tokenizer of the packaged model says where its tokens are"
        # Half the memory; three digits of a cosine are more than its meaning bears.
        return {
            text: one._replace(vectors=one.vectors.astype(np.float16))
            for text, one in zip(texts, read, strict=True)
        }


def _bytes(vectors: TokenVectors) -> int:
    return int(vectors.vectors.nbytes + vectors.spans.nbytes + vectors.known.nbytes)


FEATURES = (
    "sentence_cosine",  # cosine of the mean token vectors of the claim and of the sentence most like it so
    "passage_cosine",  # the same with the whole passage
    # Mean over the claim's tokens of the cosine to the most alike token of the best sentence.
    "sentence_match",
    "passage_match",  # the same with the whole passage
)
_TOKENS = 4_096  # of passages, compared with all claims of a group at once


@dataclass(frozen=True, slots=True)
class PairFeatures:
    """Measurements of claims × passages."""

    values: Floats  # (…, len(FEATURES)): higher = more alike; NaN where claim or passage has no word
    checks: Floats  # (…, len(CHECKS)): 1 agrees, 0 contradicts, NaN nothing to compare
    sentences: Ints  # (…, 2): range in the passage of the sentence most like the claim; -1 = none


@dataclass(frozen=True, slots=True)
class _Claim:
    tokens: NDArray[np.float32]
    pieces: tuple[str, ...]  # of the tokens, case-folded
    known: NDArray[np.bool_]
    mean: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Passage(_Claim):
    spans: list[tuple[int, int]]  # sentences
    starts: NDArray[np.int64]  # the first token of each
    means: NDArray[np.float32]  # of each


def pair_features(groups: Sequence[ClaimGroup], memory: VectorMemory) -> list[PairFeatures]:
    """Measure the claims against the passages of each group; new texts are read in one go, each once."""
    texts = dict.fromkeys(text for group in groups for part in group for text in part if has_words(text))
    vectors = memory.vectors(texts)
    # A passage that several questions retrieved is prepared once.
    ready: dict[str, _Passage] = {}
    return [_measure(claims, passages, vectors, ready) for claims, passages in groups]


def _measure(
    claims: Sequence[str],
    passages: Sequence[str],
    vectors: dict[str, TokenVectors],
    ready: dict[str, _Passage],
) -> PairFeatures:
    shape = len(claims), len(passages)
    values = np.full((*shape, len(FEATURES)), np.nan)
    checks = np.full((*shape, len(CHECKS)), np.nan)
    sentences = np.full((*shape, 2), -1, dtype=np.int64)
    readable = {text for text in (*claims, *passages) if text in vectors and len(vectors[text].spans)}
    rows = [i for i, claim in enumerate(claims) if claim in readable]
    asked = [_claim(claims[i], vectors[claims[i]]) for i in rows]
    for passage in passages:
        if rows and passage in readable and passage not in ready:
            ready[passage] = _prepare(passage, vectors[passage])
    columns = [j for j, passage in enumerate(passages) if rows and passage in ready]
    firsts = np.cumsum([0, *(len(claim.tokens) for claim in asked)])
    for j, alike in _cosines(asked, [(j, ready[passages[j]]) for j in columns]):
        passage = passages[j]
        for i, claim, first in zip(rows, asked, firsts, strict=False):
            values[i, j], best = _pair(claim, alike[first : first + len(claim.tokens)], ready[passage])
            start, end = sentences[i, j] = ready[passage].spans[best]
            checks[i, j] = [check(claims[i], passage[start:end], passage) for check in CHECKS.values()]
    return PairFeatures(values, checks, sentences)


def _cosines(
    claims: Sequence[_Claim], passages: Sequence[tuple[int, _Passage]]
) -> Iterator[tuple[int, NDArray[np.float32]]]:
    """Yield for each passage the cosine of every token of all claims and every token of the passage."""
    left = list(passages)
    while left:
        # Few large products: many small ones would cost more in calls than in work.
        n = 1 + sum(size <= _TOKENS for size in np.cumsum([len(p.tokens) for _, p in left])[1:])
        chunk, left = left[:n], left[n:]
        tokens = np.concatenate([p.tokens for _, p in chunk])
        alike = np.concatenate([claim.tokens for claim in claims]) @ tokens.T
        borders = np.cumsum([len(p.tokens) for _, p in chunk])[:-1]
        for (j, _), part in zip(chunk, np.split(alike, borders, axis=1), strict=True):
            yield j, part


def _prepare(text: str, read: TokenVectors) -> _Passage:
    tokens = read.vectors.astype(np.float32)
    spans = sentence_spans(text) or [(0, len(text))]
    # The first token at or behind the start of each sentence; sentences without one are left out.
    starts = np.searchsorted(read.spans[:, 0], [start for start, _ in spans])
    ends = np.append(starts[1:], len(tokens))
    kept = np.flatnonzero(starts < ends)
    starts = starts[kept]
    starts[0] = 0
    means = np.add.reduceat(tokens, starts, axis=0)
    return _Passage(
        tokens,
        _pieces(text, read),
        read.known,
        _unit(tokens.mean(axis=0)),
        [spans[k] for k in kept],
        starts,
        _unit(means),
    )


def _claim(text: str, read: TokenVectors) -> _Claim:
    tokens = read.vectors.astype(np.float32)
    return _Claim(tokens, _pieces(text, read), read.known, _unit(tokens[read.known].sum(axis=0)))


def _pair(claim: _Claim, alike: NDArray[np.float32], passage: _Passage) -> tuple[list[float], int]:
    """Return the features, and which sentence is the best; ``alike`` is the cosine of every two tokens."""
    _match_unknown(alike, claim, passage)
    matched = np.maximum.reduceat(alike, passage.starts, axis=1)
    by_sentence = matched.mean(axis=0)
    best = int(np.argmax(by_sentence))
    known = float(claim.known.mean())
    cosines = known * np.append(passage.means @ claim.mean, passage.mean @ claim.mean)
    if known < 1:
        # What the model cannot read has no part in the means; the share of it that is there replaces it.
        letters = matched[~claim.known]
        cosines += (1 - known) * np.append(letters.mean(axis=0), letters.max(axis=1).mean())
    return [
        float(cosines[:-1].max()),
        float(cosines[-1]),
        float(by_sentence[best]),
        float(matched.max(axis=1).mean()),
    ], best


def _match_unknown(alike: NDArray[np.float32], claim: _Claim, passage: _Passage) -> None:
    """Compare what the model has no token for, such as most ideographs, letter by letter."""
    alike[:, ~passage.known] = 0.0
    for i in np.flatnonzero(~claim.known):
        alike[i] = [claim.pieces[i] == piece for piece in passage.pieces]


def _pieces(text: str, read: TokenVectors) -> tuple[str, ...]:
    return tuple(text[start:end].casefold() for start, end in read.spans)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
