"""Runs for *attribution*, and models whose answers are a planted game of the passages in their prompt."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd

from core.attribution.step import AttributionStep
from core.pipeline.steps import fill
from core.rows import dicts_of
from core.run import Run
from tests.scripted import ScriptedLLM

BASE = -20.0
ANSWER = "Raymond Unwin built the bridge in 1901"


def shown_in(messages):
    """The passages of a prompt, numbered from 0, in its order."""
    return tuple(int(found) for found in re.findall(r"fact-(\d+)", messages[0].content))


def asked_in(messages):
    """The number of the question, from 1."""
    return int(re.search(r"bridge (\d+)", messages[-1].content + messages[0].content).group(1))


class Reader(ScriptedLLM):
    """Scores a given text at `BASE` plus ``game(shown, text)``, in two tokens; None = it cannot be scored."""

    def __init__(self, game, **options):
        super().__init__({}, **options)
        self.capabilities = replace(self.capabilities, answer_logprob=True)
        self.read = []  # prompts with texts
        self.at_once = []  # how many each call had
        self._game = game

    def score(self, messages, answers):
        self.at_once.append(len(answers))
        return [self._one(turns, text) for turns, text in zip(messages, answers, strict=True)]

    def _one(self, turns, text):
        self.read.append((turns, text))
        gained = self._game(shown_in(turns), text)
        return None if gained is None else (-4.0, BASE + 4.0 + gained)


def written(game, **options):
    """A model that writes as much of the answer as the game says: the first so many of its 7 words."""
    return ScriptedLLM(lambda request: answer_with(game(shown_in(request.messages))), **options)


def answer_with(words):
    """An answer that shares so many words with `ANSWER`; ROUGE-L F1 is words / 7, for its length is the same."""
    own = ANSWER.split()
    return " ".join([*own[:words], *(f"other{i}" for i in range(len(own) - words))])


def attribution_run(*sizes, claims=(), support=(), texts=None, manifest=None, **query) -> Run:
    """A run of one question for each size, with so many passages; ``claims`` are those of every answer.

    ``support`` are probabilities of each passage for each claim; ``query`` are cells of the questions.
    """
    ids = [f"q{i}" for i in range(1, len(sizes) + 1)]
    queries = [
        {"query_id": one, "question": f"Who built bridge {i}?", "answer": ANSWER, "answer_status": "answered"} | query
        for i, one in enumerate(ids, start=1)
    ]  # fmt: skip
    passages = [
        {
            "query_id": one, "passage_id": f"p{i}", "text": texts[i] if texts else f"It says fact-{i} here.",
            "title": "" if i else "=1+1", "retrieval_rank": i + 1.0, "slot": i + 1,
        }
        for one, size in zip(ids, sizes, strict=True) for i in range(size)
    ]  # fmt: skip
    tables = {"queries": pd.DataFrame(queries), "passages": pd.DataFrame(passages)}
    if claims:
        rows = [(one, f"c{i}", text, "baseline") for one in ids for i, text in enumerate(claims)]
        tables["claims"] = pd.DataFrame(rows, columns=["query_id", "claim_id", "text", "side"])
        cells = [
            (one, f"c{i}", f"p{j}", value)
            for one in ids for i, row in enumerate(support) for j, value in enumerate(row)
        ]  # fmt: skip
        if cells:
            tables["support"] = pd.DataFrame(
                cells, columns=["query_id", "claim_id", "passage_id", "probability"]
            )
    facts = {"source": "live", "run_id": "r", "prompt": {"style": "short", "max_tokens": 64}}
    return Run.create(facts | (manifest or {}), **tables)


def measured(run, llm, **options):
    """The run after the step."""
    return fill(run, AttributionStep(**options), llm=llm)


def rows_of(run, query_id="q1"):
    """The rows of a question, by id."""
    return {row["ablation_id"]: row for row in dicts_of(run["ablations"])(query_id)}


class Embedder:
    """Passages with the same last word of a pair ``same-<n>`` say the same; all others nothing alike."""

    def embed(self, texts):
        kinds = [(re.findall(r"same-\d+", text) or [text])[0] for text in texts]
        places = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
        return np.eye(len(places))[[places[kind] for kind in kinds]]


def evidence_over_time(masks, values):
    """The evidence of `core.attribution.settling` after each mask, for many games at once, written anew.

    ``masks``, (games, n, k), and ``values``, (games, n); yields the number of masks, the log of the test of
    each pair and the sum of the signed errors, (games, k, k), from 5 masks on.
    """
    z = masks - 0.5
    g, n, k = z.shape
    total, squares = np.zeros((g, k, k)), np.zeros((g, k, k))
    errors = [values[:, :4].std(axis=1)]
    for t in range(4, n):
        centre, level = z[:, :t].mean(axis=1), values[:, :t].mean(axis=1)
        x, y = z[:, :t] - centre[:, None], values[:, :t] - level[:, None]
        gram = np.einsum("gti,gtj->gij", x, x) + 0.25 * np.eye(k)
        weight = np.linalg.solve(gram, np.einsum("gti,gt->gi", x, y)[..., None])[..., 0]
        scale = np.sqrt(np.mean(np.square(errors[-8:]), axis=0))
        own = z[:, t] * weight
        error = values[:, t] - level - (own - centre * weight).sum(axis=1)
        errors.append(error)
        both = own[:, :, None] + own[:, None, :]
        # +1 where only the first of both is kept, -1 where only the second is.
        sign = masks[:, t, :, None].astype(int) - masks[:, t, None, :].astype(int)
        x = sign * (error[:, None, None] + both) / np.where(scale > 0, scale, 1)[:, None, None]
        total += x
        squares += x**2
        # The normal mixture of exp(s l - v l^2 / 2) with variance 1 / 12.
        yield t + 1, np.log(np.sqrt(12 / (squares + 12))) + total**2 / (2 * (squares + 12)), total.copy()
