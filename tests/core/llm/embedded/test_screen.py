"""The screen against plain forward passes of small models with random weights, of several families."""

import random

import pytest

from core.errors import Cancelled
from core.llm.embedded import screen
from core.llm.embedded.screen import Screen, removed_span
from core.llm.types import Message
from tests.core.llm.embedded.tiny_model import one_thread

pytestmark = pytest.mark.model
VOCABULARY = 97
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 4,
    "max_position_embeddings": 256,
    "initializer_range": 0.5,
    "pad_token_id": None,
    "bos_token_id": None,
    "eos_token_id": None,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
SCALED = {"rope_theta": 10_000.0, "factor": 4.0, "original_max_position_embeddings": 64}
WINDOWS = {"head_dim": 8, "sliding_window": 64}  # longer than the prompts here
FAMILIES = {
    "Llama": ("Llama", GROUPED),
    "Llama, yarn": ("Llama", GROUPED | {"rope_parameters": SCALED | {"rope_type": "yarn"}}),
    "Qwen2.5": ("Qwen2", GROUPED),
    "Gemma": ("Gemma", GROUPED | {"head_dim": 8}),
    "Gemma 2": ("Gemma2", GROUPED | WINDOWS | {"attn_logit_softcapping": 2.0}),
    "Gemma 3": ("Gemma3Text", GROUPED | WINDOWS),
    "Phi": ("Phi", SIZES | {"partial_rotary_factor": 0.5}),
    # Pairs of neighbouring dimensions turn.
    "Cohere": ("Cohere", GROUPED),
    # The second layer has no positions.
    "SmolLM3": ("SmolLM3", GROUPED | {"no_rope_layer_interval": 2}),
}
TOKENS = random.Random(1).choices(range(VOCABULARY), k=70)
PROMPT, ANSWERS = TOKENS[:40], [TOKENS[40:46], TOKENS[50:52]]
SPANS = [(0, 0), (4, 12), (12, 20), (20, 33)]


@pytest.fixture(autouse=True)
def _small():
    import torch

    with one_thread(), torch.inference_mode():
        yield


def model_of(family, layers=2, dtype="float32"):
    name, settings = FAMILIES[family]
    return made(name, settings | {"num_hidden_layers": layers}, dtype)


def made(name, settings, dtype="float32"):
    import torch
    import transformers

    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(**settings)
    return transformers.AutoModelForCausalLM.from_config(config).to(getattr(torch, dtype)).eval()


def plain(model, prompt, answer):
    """Return the log-probabilities of an answer's tokens from one forward pass without a cache."""
    import torch

    logits = model(input_ids=torch.tensor([prompt + answer])).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1)[range(len(answer)), answer].tolist()


def exact(model, span, answer):
    begin, end = span
    return plain(model, PROMPT[:begin] + PROMPT[end:], answer)


def test_removed_span():
    assert removed_span([1, 2, 3, 4, 5], [1, 4, 5]) == (1, 3)
    assert removed_span([1, 2, 3], [1, 2]) == (2, 3)
    assert removed_span([1, 2, 3], [2, 3]) == (0, 1)
    # "[ 2 ] x [ 3 ] y" without the first: the bracket before it stays, as it was read without it.
    assert removed_span([9, 2, 7, 9, 3, 8], [9, 3, 8]) == (1, 4)
    assert removed_span([5, 5, 5], [5, 5]) == (2, 3)


def test_no_removed_span():
    assert removed_span([1, 2, 3], [1, 2, 3]) is None
    assert removed_span([1, 2], [1, 2, 3]) is None
    assert removed_span([1, 2, 3, 4], [1, 9, 4]) is None  # another token stands where two were


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_where_nothing_is_kept_from_behind_the_gap(family):
    model = model_of(family)
    found = Screen(model, "cpu").logprobs(PROMPT, SPANS, ANSWERS)
    for place in (0, -1):
        for answer, logprobs in zip(ANSWERS, found[place], strict=True):
            assert logprobs == pytest.approx(exact(model, SPANS[place], answer), abs=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_exact_everywhere_with_one_layer(family):
    # The keys and values of the first layer depend on a token and its place alone, so closing the gap is all.
    model = model_of(family, layers=1)
    found = Screen(model, "cpu").logprobs(PROMPT, SPANS, ANSWERS)
    for span, of_span in zip(SPANS, found, strict=True):
        for answer, logprobs in zip(ANSWERS, of_span, strict=True):
            assert logprobs == pytest.approx(exact(model, span, answer), abs=1e-4)


def test_exact_with_one_passage():
    model = model_of("Llama")
    [[found]] = Screen(model, "cpu").logprobs(PROMPT, [(4, 33)], ANSWERS[:1])
    assert found == pytest.approx(exact(model, (4, 33), ANSWERS[0]), abs=1e-4)


def test_nothing_for_a_prompt_that_lacks_its_end():
    found = Screen(model_of("Llama"), "cpu").scores(PROMPT, [PROMPT[:-2]], ANSWERS[:1])
    assert found == [[None], [None]]


def test_exact_where_everything_behind_the_gap_is_read_again(monkeypatch):
    monkeypatch.setattr(screen, "_AGAIN", len(PROMPT))
    model = model_of("Llama", layers=3)
    found = Screen(model, "cpu").logprobs(PROMPT, SPANS, ANSWERS)
    for span, of_span in zip(SPANS, found, strict=True):
        for answer, logprobs in zip(ANSWERS, of_span, strict=True):
            assert logprobs == pytest.approx(exact(model, span, answer), abs=1e-4)


def test_approximate_in_between(monkeypatch):
    monkeypatch.setattr(screen, "_AGAIN", 2)
    monkeypatch.setattr(screen, "_LAST", 2)
    model = model_of("Llama")
    found = Screen(model, "cpu").logprobs(PROMPT, SPANS, ANSWERS)
    assert found[1][0] != pytest.approx(exact(model, SPANS[1], ANSWERS[0]), abs=1e-2)


def test_packs_change_nothing(monkeypatch):
    model = model_of("Llama")
    together = Screen(model, "cpu").logprobs(PROMPT, SPANS, ANSWERS)
    passes = []
    monkeypatch.setattr(screen, "_PACK_BYTES", 1)
    alone = Screen(model, "cpu")
    model.register_forward_hook(lambda *_: passes.append(1))
    found = alone.logprobs(PROMPT, SPANS, ANSWERS)
    assert len(passes) == 1 + len(SPANS) * len(ANSWERS)
    for a, b in zip(together, found, strict=True):
        for one, other in zip(a, b, strict=True):
            assert one == pytest.approx(other, abs=1e-5)


def test_bfloat16():
    model = model_of("Llama", dtype="bfloat16")
    assert Screen(model, "cpu").works


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        # Learned positions: a key cannot be moved.
        ("GPT2", {"vocab_size": VOCABULARY, "n_embd": 32, "n_layer": 2, "n_head": 4}),
        # Frequencies that depend on the length of the prompt.
        (
            "Llama",
            GROUPED | {"num_hidden_layers": 2, "rope_parameters": SCALED | {"rope_type": "dynamic"}},
        ),
        # Neither keys nor values.
        ("Mamba", {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2}),
    ],
)
def test_models_it_does_not_work_with(name, settings):
    assert not Screen(made(name, settings), "cpu").works


def test_none_where_the_model_forgets():
    model = model_of("Gemma 3")
    small = Screen(model, "cpu")
    assert small.works
    # 58 tokens of the prompt and 6 of the answer fill the window of 64; one more does not fit.
    assert small.logprobs(TOKENS[:58], [(4, 12)], [TOKENS[:6]]) is not None
    assert small.logprobs(TOKENS[:59], [(4, 12)], [TOKENS[:6]]) is None


PASSAGES = ["true tower\n", "Paris\n", "abab\n"]


def asked(passages, question="Where?"):
    return Message("user", "".join(passages) + question), Message("assistant", "Answer:")


def test_of_a_back_end(llm):
    without = [asked(PASSAGES[:i] + PASSAGES[i + 1 :]) for i in range(3)]
    answers = ["Paris", " ", "abab true"]
    found = llm.screen(asked(PASSAGES), without, answers)
    n_tokens = [5, None, 5]  # " P" is one token, and so are "ab" and "true"
    assert [[one and len(one) for one in of_prompt] for of_prompt in found] == [n_tokens] * 4
    for i, prompt in ((0, asked(PASSAGES)), (3, without[2])):  # all passages, and all but the last
        for j in (0, 2):
            [exact] = llm.score([prompt], [answers[j]])
            assert found[i][j] == pytest.approx(exact, abs=1e-4)


def test_of_a_back_end_with_one_passage(llm):
    [_, [one]] = llm.screen(asked(PASSAGES[:1]), [asked([])], ["Paris"])
    assert one == pytest.approx(llm.score([asked([])], ["Paris"])[0], abs=1e-4)


def test_nothing_for_a_prompt_that_differs_in_more_than_a_part(llm):
    found = llm.screen(asked(PASSAGES), [asked(PASSAGES[:2]), asked(PASSAGES, "Who?")], ["Paris"])
    assert [of[0] is None for of in found] == [False, False, True]
    # With nothing to compare, the prompt itself need not be read.
    assert llm.screen(asked(PASSAGES), [asked(PASSAGES, "Who?")], ["Paris"]) == [[None], [None]]


def test_nothing_for_what_does_not_fit(llm):
    room = llm.capabilities.context_length - llm.count_tokens(asked(PASSAGES))
    fits, too_long = ("b" * n for n in (room - 1, room))  # a space comes first
    [found, _] = llm.screen(asked(PASSAGES), [asked(PASSAGES[:2])], [fits, too_long])
    assert len(found[0]) == room
    assert found[1] is None


def test_a_cancelled_screen(llm):
    with pytest.raises(Cancelled):
        llm.screen(asked(PASSAGES), [asked(PASSAGES[:2])], ["Paris"], lambda: True)
