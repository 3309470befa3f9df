"""The packaged models themselves; converted on first use, a minute at most."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sentence_transformers import SentenceTransformer
from torch.nn import Linear

from core.influence.step import InfluenceStep
from core.llm import CompletionCache, Message, Request, open_llm
from core.llm.embedded import arithmetic
from core.llm.embeddings import SentenceEmbedder
from core.llm.packaged import packaged_embedder
from core.llm.prompts import answer_messages
from core.llm.structured import canonical
from core.pipeline.rows import questions_of
from core.run import Run
from core.sources.dataset import load_dataset
from tests.core.llm.embedded.tiny_model import tiny_model
from tests.live_runs import live_run

pytestmark = pytest.mark.model
ROOT = Path(__file__).parents[4]
PASSAGES = [
    (1, "Eiffel Tower", "The Eiffel Tower in Paris was completed in 1889. It is 330 metres tall."),
    (2, "Tokyo Tower", "Tokyo Tower opened in 1958. It is painted white and orange."),
    (3, "Tea", "Tea is made from the leaves of an evergreen shrub."),
]
QUESTION = "When was the Eiffel Tower completed?"


@pytest.fixture(scope="module")
def llm():
    return open_llm("embedded")


def ask(llm, *requests):
    return llm.generate(list(requests))


def test_it_answers_in_a_few_words_the_same_way_twice(llm):
    request = Request(answer_messages(QUESTION, PASSAGES), stop=("\n",))
    seen = []
    first = llm.generate([request], lambda i, c: seen.append((i, c.text)))[0]
    again = ask(llm, request)[0]
    assert first.text
    assert len(first.text.split()) <= 12
    assert "\n" not in first.text
    assert (again.text, again.finish_reason) == (first.text, first.finish_reason)
    assert first.prompt_tokens == llm.count_tokens(request.messages)
    assert 0 < first.completion_tokens <= request.max_tokens
    assert seen == [(0, first.text)]


def test_it_reads_the_passage(llm):
    done = ask(llm, Request(answer_messages(QUESTION, PASSAGES[:1]), stop=("\n",)))[0]
    assert "1889" in done.text


def test_what_it_can_do_and_what_answers_depend_on(llm):
    can = llm.capabilities
    assert (can.token_logprobs, can.answer_logprob, can.json_schema, can.seed) == (True, True, True, True)
    assert llm.kind == "embedded"
    # Part of every cache key: a new entry would forget all answers.
    assert set(llm.options) == {"revision", "dtype", "device", "batch_size", "begins_with"}


def test_batches_with_padding_give_the_same_answers(llm):
    # What a GPU does, on the processor: prompts of several lengths and limits, padded together.
    requests = [
        Request(answer_messages(QUESTION, PASSAGES[:n]), stop=stop, max_tokens=m)
        for n in (1, 2, 3)
        for m, stop in ((4, ()), (12, ("\n",)))
    ]
    alone = llm.generate(requests)
    order = []
    llm._batch = 4
    together = llm.generate(requests, lambda index, _: order.append(index))
    llm._batch = 1
    fields = [(c.text, c.finish_reason, c.prompt_tokens, c.completion_tokens) for c in together]
    assert fields == [(c.text, c.finish_reason, c.prompt_tokens, c.completion_tokens) for c in alone]
    assert sorted(order) == list(range(6))


def test_company_and_order_change_nothing_on_a_processor(llm):
    requests = [
        Request(answer_messages(QUESTION, PASSAGES[:n]), stop=("\n",), temperature=t, top_p=0.9, seed=n)
        for n in (1, 2, 3)
        for t in (0.0, 1.0)
    ]
    texts = [c.text for c in ask(llm, *requests)]
    assert [c.text for c in ask(llm, *requests[::-1])][::-1] == texts


def test_samples_differ_by_seed(llm):
    prompt = answer_messages("Name any animal.", PASSAGES)
    samples = ask(llm, *(Request(prompt, temperature=2.0, seed=s, max_tokens=6) for s in range(4)))
    assert len({c.text for c in samples}) > 1


def test_samples_of_one_prompt_are_drawn_together_and_it_is_read_once(llm):
    prompt = answer_messages(QUESTION, PASSAGES)
    requests = [
        Request(
            prompt, temperature=0.5 + 0.2 * s, top_p=0.9, seed=s, max_tokens=8, stop=("\n",), logprobs=True
        )
        for s in range(6)
    ]
    other = Request(answer_messages(QUESTION, PASSAGES[:1]), temperature=1.0, seed=3, max_tokens=8)
    alone = [llm.generate([request])[0] for request in (*requests, other)]
    read = []
    model = llm._ready()
    hook = model.register_forward_pre_hook(
        lambda _, args, given: read.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    try:
        together = llm.generate([*requests[:5], other, *requests[5:]])
    finally:
        hook.remove()
    together = [*together[:5], *together[6:], together[5]]
    assert len({c.text for c in alone}) > 2
    for one, with_others in zip(alone, together, strict=True):
        assert with_others.text == one.text
        assert with_others.finish_reason == one.finish_reason
        assert with_others.completion_tokens == one.completion_tokens
        assert with_others.prompt_tokens == one.prompt_tokens
        if one.logprobs is not None:
            assert with_others.logprobs == pytest.approx(one.logprobs, abs=1e-3)
    # Both prompts are read once, what they begin with too; then all seven are answered together.
    prompts = [llm._chat.encode(request.messages)[:-1] for request in (requests[0], other)]
    beginnings = {tuple(prompt[: n + 1]) for prompt in prompts for n in range(len(prompt))}
    assert sum(n for rows, n in read if rows == 1) == len(beginnings)
    assert {shape for shape in read if shape[0] != 1} == {(7, 1)}


def test_single_samples_of_several_prompts_share_a_padded_batch_where_there_are_batches(llm):
    requests = [
        Request(answer_messages(QUESTION, PASSAGES[:n]), temperature=0.8, seed=n, max_tokens=4)
        for n in (1, 2, 3)
    ]
    alone = [llm.generate([request])[0].text for request in requests]
    read = []
    hook = llm._ready().register_forward_pre_hook(
        lambda _, args, given: read.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    llm._batch = 4
    try:
        together = [completion.text for completion in llm.generate(requests)]
    finally:
        hook.remove()
        llm._batch = 1
    assert together == alone
    assert [shape[0] for shape in read if shape[1] > 1] == [3]


def test_what_it_writes_it_scores_alike(llm):
    requests = [
        Request(answer_messages(QUESTION, PASSAGES[:n]), stop=("\n",), logprobs=True, temperature=t, seed=2)
        for n, t in ((1, 0.0), (2, 0.0), (1, 1.0))
    ]
    done = ask(llm, *requests)
    scores = llm.score([r.messages for r in requests], [c.text for c in done])
    for completion, scored in zip(done, scores, strict=True):
        assert completion.text
        assert scored == pytest.approx(completion.logprobs, abs=1e-3)


def test_the_passage_makes_the_answer_likely(llm):
    question = "When was the Marlow Tower completed?"  # there is none, so only a passage can tell
    said = [(1, "Marlow Tower", "The Marlow Tower in Ostby was completed in 1907. It is 41 metres tall.")]
    with_it, without = answer_messages(question, said), answer_messages(question, PASSAGES[1:])
    scores = llm.score([with_it, without, with_it], ["1907", "1907", "1958"])
    right, unread, wrong = map(sum, scores)
    assert right > unread + 2
    assert right > wrong + 2


def test_a_schema_shapes_the_answer(llm):
    schema = canonical(
        {
            "type": "object",
            "properties": {"year": {"type": "integer"}, "certain": {"type": "boolean"}},
            "required": ["year", "certain"],
        }
    )
    request = Request(answer_messages(QUESTION, PASSAGES[:1]), schema=schema, max_tokens=40, stop=("y",))
    greedy, sampled = ask(llm, request, replace(request, temperature=1.0, seed=1))
    assert json.loads(greedy.text)["year"] == 1889
    assert sorted(json.loads(sampled.text)) == ["certain", "year"]
    assert (greedy.finish_reason, greedy.logprobs) == ("stop", None)


def test_a_prompt_too_long_is_an_error_of_its_own(llm):
    long = Request((Message("user", "word " * 9000),))
    fine = Request((Message("user", "Say yes."),), max_tokens=3)
    first, second = ask(llm, long, fine)
    assert "tokens" in first.error
    assert "8,192" in first.error
    assert first.text == ""
    assert second.error is None


def test_control_tokens_in_a_passage_stay_text(llm):
    plain = llm.count_tokens([Message("user", "a")])
    spelled = llm.count_tokens([Message("user", "a<|im_end|>")])
    assert spelled > plain + 1  # one token would be the control token itself


def test_an_answer_that_hits_the_limit_says_so(llm):
    done = ask(llm, Request((Message("user", "Count from one to a hundred."),), max_tokens=4))[0]
    assert (done.finish_reason, done.completion_tokens) == ("length", 4)


def test_no_network_is_tried_and_loading_is_quick(monkeypatch, capfd):
    def refused(*_):
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    start = time.perf_counter()
    fresh = open_llm("embedded", dtype="float32")
    done = ask(fresh, Request((Message("user", "Hi"),), max_tokens=2))[0]
    assert time.perf_counter() - start < 60
    assert done.error is None
    assert fresh.options["dtype"] == "float32"
    vectors = SentenceEmbedder().embed(["a cat", "a kitten", "the stock market"])
    assert vectors.shape == (3, 384)
    captured = capfd.readouterr()
    assert captured.err == ""
    assert captured.out == ""


def test_embeddings_are_unit_rows_that_know_what_is_alike():
    embedder = SentenceEmbedder()
    vectors = embedder.embed(["The cat sleeps.", "A cat is sleeping.", "Shares fell on Monday."])
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3
    assert embedder.embed([]).shape == (0, 384)


def test_embeddings_are_those_of_the_library_and_multiplied_by_onednn():
    texts = [
        "",
        "A cat.",
        "Ai sống ở Hà Nội?",
        "谁改进了造纸术？",
        "word " * 400,
        *(f"Town {i} " * i for i in range(20)),
    ]
    plain = SentenceTransformer(str(packaged_embedder()), local_files_only=True)
    embedder = SentenceEmbedder()
    assert np.abs(embedder.embed(texts) - plain.encode(texts, show_progress_bar=False)).max() < 1e-6
    assert not any(isinstance(part, Linear) for part in embedder._loaded[0].modules())
    # Tokens too, and in the order given; each alone in the plain model, "word" cut into pieces there.
    for text, tokens in zip(texts[1:4], embedder.embed_tokens(texts)[1:4], strict=True):
        alone = plain.encode(
            text, output_value="token_embeddings", convert_to_numpy=True, show_progress_bar=False
        )
        expected = np.asarray(alone)[1:-1]  # without the marks of start and end
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        assert np.abs(tokens.vectors - expected).max() < 1e-6


@pytest.fixture
def questions(tmp_path):
    records = [
        {
            "id": name, "question": question, "answers": ["1889"],
            "passages": [{"id": f"p{n}", "title": t, "text": x} for n, t, x in PASSAGES],
        }
        for name, question in (("a", QUESTION), ("b", "How tall is the Eiffel Tower?"))
    ]  # fmt: skip
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


@pytest.mark.slow
def test_killed_and_resumed_through_the_command_line(llm, questions, tmp_path):
    data = load_dataset(questions)
    reference = live_run(data, llm, step=InfluenceStep(repeats=1, max_tokens=4))
    assert (reference.queries["answer_status"] == "answered").all()

    cache, out = tmp_path / "c.db", tmp_path / "run"
    arguments = [sys.executable, "-m", "core", "analyze", str(questions), "--repeats", "1", "--max-tokens", "4",
                 "--cache", str(cache), "--out", str(out)]  # fmt: skip
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline and _rows(cache) < 1:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    kept = _rows(cache)
    assert 1 <= kept < 12  # the first question's calls are answered together, or some of them kept

    done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    resumed = Run.load(out)
    assert resumed.run_id == reference.run_id
    assert (resumed.manifest["cost"]["calls"], resumed.manifest["cost"]["cached"]) == (12 - kept, kept)
    for name in reference:
        expected, found = reference[name], resumed[name]
        if name == "queries":
            expected, found = expected.drop(columns="latency"), found.drop(columns="latency")
        pd.testing.assert_frame_equal(found, expected)


def _rows(path):
    with suppress(Exception), CompletionCache(path) as cache:
        return len(cache)
    return 0


def test_single_precision_is_the_default_and_half_precision_is_called_rounded(tmp_path):
    folder = tiny_model(tmp_path)
    assert open_llm("embedded", folder).options["dtype"] == "float32"
    assert open_llm("embedded", folder).notes == ()
    half = open_llm("embedded", folder, dtype="bfloat16")
    (tmp_path / "data.jsonl").write_text(
        '{"question": "a?", "passages": ["b", "c", "d"]}\n', encoding="utf-8"
    )
    data = load_dataset(tmp_path / "data.jsonl")
    notes = live_run(data, half, step=InfluenceStep(max_tokens=2)).manifest["notes"]
    assert (
        "Rounded: the model computes in bfloat16, so answers change, or stay the same, by rounding. Measure "
        "influence in float32."
    ) in notes


def test_answers_without_each_passage_are_those_of_plain_calls(llm, monkeypatch):
    run = Run.load(ROOT / "sample_data" / "recorded_run_short")
    question = questions_of(run, ())
    calls = InfluenceStep(max_tokens=6).calls(question(run.queries["query_id"][0]))[:4]
    monkeypatch.setattr(arithmetic, "speed_up", lambda model: model)
    plain = open_llm("embedded")
    monkeypatch.setattr(plain, "_prefix_reader", lambda: None)
    expected = ask(plain, *(call.request for call in calls))
    found = ask(llm, *(call.request for call in calls))
    assert len({one.text for one in expected}) > 2
    for one, other in zip(expected, found, strict=True):
        assert replace(other, latency=0.0) == replace(one, latency=0.0)
