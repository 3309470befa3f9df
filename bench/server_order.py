"""Drop-one calls on a real llama.cpp server: as listed and many at once, against the order and slots in use.

Each side has a server of its own with the packaged model and four slots, as llama.cpp starts by default, and
both get the same questions of the recorded run: baseline, each passage left out, one repeat, closed book.
The naive side sends all calls in this order, eight at once. Reading with nothing shared and nothing decoded,
k passages cost k + k (k − 1) = 100 for ten, and 55 with all that drop-one prompts share: 1.8 times is the
limit of what an order can save.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.lines import Line, Size, in_turn
from core.influence.step import InfluenceStep
from core.llm.openai.llm import OpenAICompatibleLLM
from core.llm.types import Completion, Request
from core.pipeline.rows import questions_of
from core.run import Run
from tests.servers.fault_proxy import FaultProxy, fault_proxy
from tests.servers.llama_server import llama_server

RECORDED = Path(__file__).resolve().parents[1] / "sample_data" / "recorded_run"
SLOTS, AT_ONCE, N_THREADS = 4, 8, os.cpu_count() or 1


def lines(size: Size) -> Iterator[Line]:
    """Measure rounds of four questions, new ones in every round."""
    n_rounds, n_each = size.pick(1, 1, 2), size.pick(1, 2, 4)
    k, n_words = size.pick(2, 6, 10), size.pick(5, 15, 60)
    asked = drop_one(n_rounds * n_each, k, n_words)
    parts = [asked[i : i + n_each] for i in range(0, len(asked), n_each)]
    with ExitStack() as servers:
        proxies = [
            servers.enter_context(fault_proxy(servers.enter_context(llama_server(2048, SLOTS, N_THREADS))))
            for _ in range(2)
        ]
        naive, ours = (
            OpenAICompatibleLLM(base_url=f"{one.address}/v1", parallel=AT_ONCE, timeout=900.0)
            for one in proxies
        )
        for llm in (naive, ours):  # loads the model, and asks the server for its slots
            llm.generate([Request(asked[0][0].messages[:1], max_tokens=1, seed=99)])
        found = list(
            in_turn(lambda i: as_listed(naive, parts[i]), lambda i: in_order(ours, parts[i]), n_rounds)
        )
        read = [tokens_read(one) for one in proxies]
    pairs = [pair for theirs, same, _ in found for pair in zip(theirs, same, strict=True)]
    equal = sum(a.text == b.text for a, b in pairs)
    where = f"{len(asked)} questions, {k} passages of {n_words} words"
    against = f"calls as listed, {AT_ONCE} at once"
    yield Line.of(
        f"time, {where}",
        against,
        [ratio for _, _, ratio in found],
        f"{equal} of {len(pairs)} answers equal",
        floor=1.4,
        goal=2.5,
        note="What a slot holds, and what is read beside it, changes last digits of llama.cpp",
    )
    yield Line.of(f"prompt tokens read, {where}", against, [read[0] / read[1]], "as the server counts them")


def tokens_read(proxy: FaultProxy) -> int:
    """Return the prompt tokens that a server had to read, all but those that it remembered."""
    sent = [json.loads(exchange.answer) for exchange in proxy.requests("/chat/completions")]
    return sum(answer["timings"]["prompt_n"] for answer in sent)


def drop_one(n_questions: int, k: int, n_words: int) -> list[list[Request]]:
    """Return the calls of the first questions in English, with short passages."""
    run, step = Run.load(RECORDED), InfluenceStep(repeats=1)
    question_of = questions_of(run, ())
    found = []
    for query_id in run.queries["query_id"]:
        question = question_of(query_id)
        if len(question.passages) >= k and str(question.query["question"]).isascii():
            cut = [{**p, "text": " ".join(p["text"].split()[:n_words])} for p in question.passages[:k]]
            found.append([call.request for call in step.calls(replace(question, passages=cut))])
    return found[:n_questions]


def as_listed(llm: OpenAICompatibleLLM, questions: Sequence[Sequence[Request]]) -> list[Completion]:
    """Send every call on its own, in the order of the questions."""
    calls = [request for requests in questions for request in requests]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda request: llm.generate([request])[0], calls))


def in_order(llm: OpenAICompatibleLLM, questions: Sequence[Sequence[Request]]) -> list[Completion]:
    """Send the calls of each question together, as many questions at once as the pipeline would."""
    with ThreadPoolExecutor(llm.capabilities.parallel) as pool:
        return [answer for answers in pool.map(llm.generate, questions) for answer in answers]
