"""Runs for fixed-answer scores, and a model whose log-probabilities are a table."""

from dataclasses import replace

import numpy as np
import pandas as pd

from core.likelihood.analysis import analyse_likelihood
from core.run import Run
from core.text.matching import correctness
from tests.scripted import ScriptedLLM

BASE = -10.0


class Reader(ScriptedLLM):
    """Scores an answer at `BASE` plus what each passage in the prompt gives it, by ``gains[answer][text]``.

    In two tokens, of which the first has -4. An answer in ``never`` cannot be scored without ``missing``.
    """

    def __init__(self, gains, never=(), missing="", **options):
        super().__init__({}, **options)
        self.capabilities = replace(self.capabilities, answer_logprob=True)
        self.calls_of_score = []
        self._gains, self._never, self._missing = gains, never, missing

    def score(self, messages, answers):
        self.calls_of_score.append(list(zip(messages, answers, strict=True)))
        return [self._one(turns[0].content, answer) for turns, answer in self.calls_of_score[-1]]

    def _one(self, prompt, answer):
        if answer in self._never and self._missing not in prompt:
            return None
        own = self._gains.get(answer, {})
        return (-4.0, BASE + 4.0 + sum(gain for text, gain in own.items() if text in prompt))


def likelihood_run(*questions, manifest=None):
    """A run of questions: ``answer, references, passages``, a mapping of text to whether it is gold."""
    queries, passages = [], []
    for number, (answer, references, texts, *status) in enumerate(questions, start=1):
        query_id = f"q{number}"
        queries.append(
            {
                "query_id": query_id,
                "question": f"Which word is number {number}?",
                "answer": answer,
                "answer_status": status[0] if status else "answered",
                "reference_answers": references,
            }
        )
        passages += [
            {"query_id": query_id, "passage_id": f"p{i}", "text": text, "retrieval_rank": i, "is_gold": gold}
            for i, (text, gold) in enumerate(texts.items(), start=1)
        ]
    return Run.create(
        {"source": "upload", "name": "Likelihood"} | (manifest or {}),
        queries=pd.DataFrame(queries),
        passages=pd.DataFrame(passages),
    )


def scored_run(*questions, **columns):
    """A run of questions: ``answer, reference`` and (drop, drop of the reference, gold) of each passage."""
    rows = [
        (
            answer,
            None if reference is None else [reference],
            {f"text {i}": bool(one[2]) for i, one in enumerate(own)},
        )
        for answer, reference, *own in questions
    ]
    run = likelihood_run(*rows)
    drops = [one[:2] for _, _, *own in questions for one in own]
    passages = run.passages.assign(
        logprob_drop=[drop for drop, _ in drops],
        reference_logprob_drop=[drop for _, drop in drops],
        **columns,
    )
    return Run.create(run.manifest, queries=run.queries, passages=passages)


def analysed_run(run, rouge=None):
    """The analysis of a run, without any influence by words unless it is given."""
    q = run.queries
    correct = correctness(q)
    return analyse_likelihood(run, np.zeros(len(run.passages)) if rouge is None else np.array(rouge), correct)
