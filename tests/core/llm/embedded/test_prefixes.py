"""Prompts read in one go give the tokens and the numbers of transformers' own `generate` and forward pass."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from core.llm.embedded.arithmetic import causal_attention, speed_up
from core.llm.embedded.prefixes import PrefixReader
from core.llm.packaged import quiet

pytestmark = pytest.mark.model

SIZES = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
# A window shorter than the prompts, so that its mask matters.
KINDS = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {"head_dim": 12},
    "Mistral": {"sliding_window": 16},
    "Gemma": {"head_dim": 12},
    "Gemma2": {"head_dim": 12, "sliding_window": 16},
    "Gemma3": {
        "head_dim": 12,
        "sliding_window": 16,
        "layer_types": ["sliding_attention"] * 2 + ["full_attention"],
    },
    "Phi": {},
    "Phi3": {},
    "GPT2": {},
}
WIDE = [[5, 9, 4, *range(10, 60), *tail] for tail in ([7], [7, 8], [8, 3, 9], [7, 8, 5])]
PROMPTS = [*WIDE, [5, 9, 4, *range(30, 60), 7], [5, 9, *range(10, 40), 3], WIDE[0]]


def made(kind):
    """Return a small model with random weights."""
    names = {"Gemma3": "Gemma3Text"}.get(kind, kind)
    model_name = {"GPT2": "GPT2LMHeadModel"}.get(kind, f"{kind}ForCausalLM")
    torch.manual_seed(1)
    with quiet():
        config = getattr(transformers, f"{names}Config")(**SIZES, **KINDS[kind], initializer_range=0.3)
        return getattr(transformers, model_name)(config).eval()


def plain(model, prompt, n):
    """Return transformers' own greedy tokens."""
    ids = torch.tensor([prompt])
    found = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False, eos_token_id=None
    )
    return found[0, len(prompt) :].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_scores_are_those_of_transformers(kind):
    model = made(kind)
    answer = [11, 40, 3, 60]
    with torch.inference_mode(), quiet():
        expected = [plain(model, prompt, 12) for prompt in PROMPTS]
        scores = []
        for prompt in PROMPTS:
            whole = model(input_ids=torch.tensor([prompt + answer])).logits[0].double().log_softmax(-1)
            scores.append([whole[len(prompt) - 1 + i, token].item() for i, token in enumerate(answer)])

        fast = speed_up(model)
        assert PrefixReader.suits(fast)
        reader = PrefixReader(fast)
        ordered = sorted(PROMPTS)
        width = max(map(len, ordered))
        cache = reader.together(ordered, 12, lambda: None)
        ids = torch.tensor([[0] * (width - len(p)) + p for p in ordered])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in ordered])
        found = fast.generate(
            ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=12,
            do_sample=False,
            eos_token_id=None,
        )[:, width:].tolist()
        scored = [reader.answer_logprobs(prompt, answer) for prompt in PROMPTS]
        assert reader.together([[5], [5, 9]], 1, lambda: None) is None  # of one token nothing is read yet
        assert reader.together([[5, 9], [5, 8, 7]], 1, lambda: None).get_seq_length() == 2
    assert len({tuple(tokens) for tokens in expected}) > 2
    assert dict(zip(map(tuple, ordered), found, strict=True)) == dict(
        zip(map(tuple, PROMPTS), expected, strict=True)
    )
    for ours, theirs in zip(scored, scores, strict=True):
        assert ours == pytest.approx(theirs, abs=2e-5)


@pytest.mark.parametrize("kind", ["Mamba", "FalconH1", "Bloom"])
def test_a_model_whose_memory_cannot_be_cut_back_is_not_read_so(kind):
    # Bloom has an ordinary cache, but cannot be told the places of its tokens.
    config = getattr(transformers, f"{kind}Config")(vocab_size=50, hidden_size=32, num_hidden_layers=2)
    with torch.device("meta"):
        model = getattr(transformers, f"{kind}ForCausalLM")(config)
    assert not PrefixReader.suits(model)


def test_what_prompts_begin_with_is_read_once():
    model = made("Llama")
    read = []
    model.register_forward_pre_hook(
        lambda _, args, given: read.append(given["input_ids"].shape[1]), with_kwargs=True
    )
    with torch.inference_mode():
        PrefixReader(model).together(sorted(PROMPTS), 4, lambda: None)
    beginnings = {tuple(p[: n + 1]) for p in PROMPTS for n in range(len(p) - 1)}
    assert sum(read) == len(beginnings)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 2),
    st.integers(1, 2),
    st.integers(1, 3),
    st.integers(2, 300),
    st.integers(0, 150),
    st.integers(0, 99),
)
def test_attention_is_that_of_torch_with_a_mask(rows, heads, shared, m, before, seed):
    torch.manual_seed(seed)
    query = torch.randn(rows, heads * shared, m, 8)
    key, value = torch.randn(2, rows, heads, before + m, 8)
    mask = torch.ones(m, before + m, dtype=torch.bool).tril(before)
    expected = torch.nn.functional.scaled_dot_product_attention(
        query.double(),
        key.double().repeat_interleave(shared, 1),
        value.double().repeat_interleave(shared, 1),
        attn_mask=mask,
        scale=0.3,
    )
    torch.testing.assert_close(causal_attention(query, key, value, 0.3).double(), expected, rtol=0, atol=3e-6)


@pytest.mark.parametrize("rows", [1, 7, 8, 40])
def test_products_are_those_of_torch(rows):
    torch.manual_seed(0)
    layer = torch.nn.Linear(33, 17)
    model = made("Llama")
    model.extra = layer
    x = torch.randn(rows, 33)
    expected = torch.nn.functional.linear(x.double(), layer.weight.double(), layer.bias.double())
    with torch.inference_mode():
        speed_up(model)
        torch.testing.assert_close(layer(x).double(), expected, rtol=0, atol=2e-6)
    assert ("_product" in repr(layer.forward)) == torch.backends.mkldnn.is_available()


def test_half_precision_is_left_alone():
    model = made("Llama").bfloat16()
    attention = model.config._attn_implementation
    assert speed_up(model) is model
    assert model.config._attn_implementation == attention
    assert not any("forward" in vars(module) for module in model.modules())
