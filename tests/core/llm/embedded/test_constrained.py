"""JSON under a schema: the automaton follows the schema, and the model follows the automaton."""

import json
import math

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from core.errors import Cancelled, InputError
from core.llm import Message, Request, open_llm
from core.llm.embedded.decoding import Grammars, token_bytes
from core.llm.structured import canonical
from tests.core.llm.embedded.tiny_model import tiny_model

pytestmark = pytest.mark.model
PROMPT = (Message("user", "Say something."),)
TEXT = {"type": "string"}


def record(properties, **more):
    return {"type": "object", "properties": properties, "required": list(properties), **more}


@pytest.fixture
def wide(llm):
    llm._batch = 16
    yield llm
    llm._batch = 1


def ask(llm, schema, **more):
    return Request(PROMPT, schema=canonical(schema), **{"max_tokens": 120, **more})


CLOSED = [
    {"enum": ["yes", "no", 1, None]},
    {"const": {"a": [1, "x"]}},
    record({"ok": {"type": "boolean"}, "kind": {"enum": ["是", "否", "não"]}}),
    {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "maxItems": 3},
    {"$defs": {"v": {"enum": ["u", "v"]}}, "type": "object", "properties": {"x": {"$ref": "#/$defs/v"}}, "required": ["x"]},
    {"anyOf": [{"const": 1}, {"type": "null"}]},
    record({"day": {"type": "string", "format": "date"}, "code": {"type": "string", "pattern": "^[a-c]{2}$"}}),
    record({"note": {"type": "string", "maxLength": 5}}, additionalProperties=False),
]  # fmt: skip


@pytest.mark.parametrize("schema", CLOSED, ids=lambda s: canonical(s)[:40])
@pytest.mark.parametrize("temperature", [0.0, 2.0])
def test_even_a_random_model_keeps_to_the_schema(wide, schema, temperature):
    # Weights are random, so nothing but the constraint can make these answers valid.
    done = wide.generate([ask(wide, schema, temperature=temperature, seed=s) for s in range(4)])
    for completion in done:
        assert (completion.error, completion.finish_reason) == (None, "stop")
        Draft202012Validator(schema).validate(json.loads(completion.text))


def test_open_text_that_outgrows_the_limit_is_cut_and_says_so(llm):
    done = llm.generate([ask(llm, record({"x": TEXT}), max_tokens=6)])[0]
    assert (done.finish_reason, done.completion_tokens) == ("length", 6)
    assert done.text.startswith("{")


def test_json_that_is_whole_with_the_last_token_is_not_cut_off(llm):
    exact = llm.generate([ask(llm, {"const": "xyz"}, max_tokens=5)])[0]
    assert (exact.text, exact.finish_reason, exact.completion_tokens) == ('"xyz"', "stop", 5)
    cut = llm.generate([ask(llm, {"const": "xyz"}, max_tokens=4)])[0]
    assert (cut.text, cut.finish_reason) == ('"xyz', "length")


def test_each_row_of_a_batch_follows_its_own_schema_or_none(wide):
    schemas = [{"const": "xyz"}, {"enum": [1, 22, 333]}, None, record({"ok": {"type": "boolean"}})]
    requests = [
        Request(
            PROMPT, schema=canonical(s) if s else None, max_tokens=30, temperature=t, seed=5, logprobs=t > 0
        )
        for s in schemas
        for t in (0.0, 1.5)
    ]
    together = wide.generate(requests)
    wide._batch = 1
    alone = wide.generate(requests)

    def facts(completions):
        return [(c.text, c.finish_reason, c.completion_tokens) for c in completions]

    assert facts(together) == facts(alone)
    assert together[0].text == together[1].text == '"xyz"'
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == (None if other.logprobs is None else pytest.approx(other.logprobs, abs=1e-4))


def test_sampling_chooses_among_what_is_allowed_as_the_model_weighs_it(wide):
    # After the quotation mark only p, q and r are left; their shares are the softmax over these three alone.
    schema = {"enum": ["p", "q", "r"]}
    n = 600
    done = wide.generate([ask(wide, schema, temperature=1.0, seed=s, max_tokens=4) for s in range(n)])
    weights = np.array([math.exp(wide.score([PROMPT], [f'"{x}'])[0][1]) for x in "pqr"])
    expected = weights / weights.sum()
    shares = np.array([sum(c.text == f'"{x}"' for c in done) for x in "pqr"]) / n
    # Five standard errors of a share at most.
    assert shares == pytest.approx(expected, abs=5 * 0.5 / math.sqrt(n))
    assert shares.sum() == 1


def test_stop_sequences_do_not_cut_json(llm):
    done = llm.generate([ask(llm, {"const": "x\ny"}, stop=("y", '"', "\n"))])[0]
    assert json.loads(done.text) == "x\ny"


def test_properties_come_in_the_order_they_are_written(llm):
    for names in (("why", "score"), ("score", "why")):
        schema = record({name: {"enum": [name]} for name in names})
        text = llm.generate([ask(llm, schema)])[0].text
        assert list(json.loads(text)) == list(names)


def test_a_schema_that_cannot_be_compiled_is_an_error_of_its_own_request(llm):
    refused, fine = llm.generate([ask(llm, {"type": "string", "pattern": "(?=a)b"}), ask(llm, {"const": 1})])
    assert (refused.finish_reason, refused.text) == ("error", "")
    assert refused.error.startswith("The model cannot be kept to this JSON Schema")
    assert len(refused.error) < 500
    assert fine.text == "1"


def test_a_model_without_an_end_says_so(tmp_path):
    endless = open_llm("embedded", tiny_model(tmp_path, ends=False), dtype="float32")
    done = endless.generate([ask(endless, {"const": 1})])[0]
    assert "no token that ends an answer" in done.error


def test_tokens_are_bytes_and_control_tokens_are_not_among_them(llm):
    spelled = token_bytes(llm._tokenizer)
    assert set(spelled) >= {bytes([b]) for b in range(256)} | {b"true", b" P", b'{"'}
    specials = {llm._tokenizer.convert_tokens_to_ids(t) for t in ("<|end|>", "<|turn|>", "<|pad|>")}
    assert not specials & {number for numbers in spelled.values() for number in numbers}
    assert sum(map(len, spelled.values())) == len(llm._tokenizer) - 3


def test_sentencepiece_vocabularies_are_spelled_too():
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"<0x0A>": 0, "<0xE6>": 1, "▁the": 2, "a": 3, "</s>": 4}
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=[], byte_fallback=True))
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="</s>")
    assert token_bytes(tokenizer) == {b"\n": [0], b"\xe6": [1], b" the": [2], b"a": [3]}


def test_a_vocabulary_that_cannot_spell_the_answer_is_refused_not_followed_into_nothing():
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel({'"': 0, "a": 1, "</s>": 2}, unk_token="</s>"))
    grammars = Grammars(PreTrainedTokenizerFast(tokenizer_object=core, eos_token="</s>"), 2)
    grammars.guide(canonical({"const": "a"}))
    with pytest.raises(InputError, match="cannot be kept to this JSON Schema"):
        grammars.guide(canonical({"const": "b"}))


def test_a_guide_allows_exactly_what_can_follow(llm):
    guided = Grammars(llm._tokenizer, llm._tokenizer.eos_token_id).guide(canonical({"enum": [True, 12, 13]}))
    width = len(llm._tokenizer) + 5

    def spelled():
        numbers = np.flatnonzero(guided.allowed(width))
        return {llm._tokenizer.decode([n]) for n in numbers}

    # Every beginning of "true" that is a token, and the 1 of both numbers.
    assert spelled() == {"t", "tr", "tru", "true", "1"}
    guided.advance(llm._tokenizer.convert_tokens_to_ids("1"))
    assert spelled() == {"2", "3"}
    assert not guided.complete
    guided.advance(llm._tokenizer.convert_tokens_to_ids("3"))
    assert guided.complete
    assert spelled() == {"<|end|>"}


def test_generation_is_cancelled_between_two_tokens_and_two_prompts(llm):
    finished, looks = [], []

    def cancelled():
        looks.append(len(finished))
        return len(looks) > 12

    requests = [Request(PROMPT, max_tokens=n) for n in (4, 5, 4, 5)]
    with pytest.raises(Cancelled, match="everything finished so far is kept"):
        llm.generate(requests, lambda index, _: finished.append(index), cancelled)
    # One look at the beginning; then one before each batch and each of its prompts, one after each token: 1 + 7,
    # and 3 + 2 of those that get 5 tokens.
    assert looks == [0] * 8 + [2] * 5
    assert finished == [0, 2]
    assert llm.generate(requests[:1])[0].error is None
