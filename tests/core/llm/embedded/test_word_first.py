"""An answer has a word before it ends, whatever the model would rather do."""

from dataclasses import replace

import numpy as np
import pytest

from core.llm import Message, Request, request_key
from core.llm.embedded import decoding
from core.llm.embedded.decoding import Beginnings, WordFirst
from core.llm.structured import canonical

pytestmark = pytest.mark.model
PLAIN = Request((Message("user", "who was it"),), max_tokens=6, stop=("\n",))
SCHEMA = canonical({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]})


@pytest.fixture
def longing(llm):
    """Make the model want some tokens above all others, the first the most."""
    import torch

    def want(*texts):
        bias = torch.zeros(head.out_features)
        for place, text in enumerate(texts):
            bias[llm._tokenizer.convert_tokens_to_ids(text)] = 1e6 / (place + 1)
        head.bias = torch.nn.Parameter(bias)
        return llm

    head = llm._ready().lm_head
    yield want
    head.bias = None


def tokens(llm, *texts):
    return [llm._tokenizer.convert_tokens_to_ids(text) for text in texts]


def test_which_tokens_may_begin(llm):
    known = Beginnings(llm._tokenizer)
    words = tokens(llm, "a", "true", "ĠP", "7")
    marks = tokens(llm, "Ġ", '"', "$", '{"')
    part = tokens(llm, "Ã")  # the first byte of é and others
    never = tokens(llm, "Ċ", "č", "<|end|>", "<|pad|>", "<|turn|>")
    assert known.first[words + marks + part].all() and not any(
        known.first[i] for i in never if i < known.first.size
    )
    assert known.word[words + part].all() and not known.word[marks].any()


def rows(llm, requests, said):
    """Which tokens stay possible in each row."""
    import torch

    mask = WordFirst(Beginnings(llm._tokenizer), llm._tokenizer, requests, width=1)
    width = len(llm._tokenizer) + 5
    scores = mask(torch.tensor([[0, *row] for row in said]), torch.zeros(len(said), width))
    return np.isfinite(scores.numpy())


def test_after_a_mark_comes_a_word_and_after_a_word_anything(llm):
    mark, word, space = tokens(llm, '"', "a", "Ġ")
    end, line = tokens(llm, "<|end|>", "Ċ")
    after_mark, after_space, after_word = rows(llm, [PLAIN] * 3, [[mark], [space], [word]])
    for row in (after_mark, after_space):
        assert row[word] and not row[[mark, space, end, line]].any()
    assert after_word.all()


def test_an_answer_of_one_line_goes_on_behind_a_colon(llm):
    colon, word = tokens(llm, ":", "a")
    end, line, mark = tokens(llm, "<|end|>", "Ċ", '"')
    one_line, lines = rows(llm, [PLAIN, replace(PLAIN, stop=())], [[word, colon]] * 2)
    assert one_line[[word, mark]].all() and not one_line[[end, line]].any()
    assert lines.all()


def test_a_colon_with_its_line_break_is_no_end_either(llm, monkeypatch):
    word, other = tokens(llm, "a", "b")
    spelled = {b"a": [word], b"b": [other], b":\n": [7], b": \r": [8], b"\n": [9], b"a:b\n": [10]}
    monkeypatch.setattr(decoding, "token_bytes", lambda tokenizer: spelled)
    one_line, lines = rows(llm, [PLAIN, replace(PLAIN, stop=())], [[word]] * 2)
    assert not one_line[[7, 8]].any() and one_line[[word, other, 9, 10]].all()
    assert lines.all()


def test_a_schema_and_a_single_token_are_seen_to(llm):
    mark, word = tokens(llm, '"', "a")
    free, single, schema = rows(
        llm, [PLAIN, replace(PLAIN, max_tokens=1), replace(PLAIN, schema=SCHEMA)], [[], [], []]
    )
    assert free[mark] and free[word]
    assert single[word] and not single[mark]
    assert schema.all()


@pytest.mark.parametrize(
    "first", [("<|end|>", "a"), ("Ċ", "7"), ("Ġ", "Ċ", "a"), ("Ċ", "<|end|>", '"', "!", "a")]
)
def test_a_model_that_would_end_at_once_says_something(longing, first):
    (done,) = longing(*first).generate([replace(PLAIN, logprobs=True)])
    assert done.text.strip('"').startswith(first[-1])
    if first[0] != "Ġ":
        assert done.logprobs[0] < -1e5  # the model's own, not that of what was left


def test_it_is_part_of_what_an_answer_depends_on(llm, monkeypatch):
    key = request_key(llm, PLAIN)
    monkeypatch.setattr(type(llm), "word_first", False)
    assert request_key(llm, PLAIN) != key and set(llm.options) == {
        "revision",
        "dtype",
        "device",
        "batch_size",
    }
