"""Parts of the embedded back end that need no model, or none but a stand-in for its sizes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.masking_utils import causal_mask_function

from core.llm.embedded import arithmetic, screen
from core.llm.embedded.decoding import _piece, _uncompilable, gumbel_scores
from core.llm.embedded.loading import pad_token
from core.llm.embedded.scoring import batches, fitting, together

SPACES = {
    "q_length": 3,
    "kv_length": 3,
    "batch_size": 1,
    "device": "cpu",
    "mask_function": causal_mask_function,
}


def mask(**given):
    return arithmetic._mask(q_offset=given.get("kv_offset", 0), **SPACES | given)


def test_tokens_that_all_attend_to_all_before_them_need_no_mask():
    assert mask() is None
    lower = torch.ones(3, 3, dtype=torch.bool).tril()
    # Who asks for the mask itself gets it; so do a prompt with padding, and one that goes on.
    assert torch.equal(mask(allow_is_causal_skip=False)[0, 0], lower)
    padded = mask(attention_mask=torch.tensor([[False, True, True]]))
    assert torch.equal(padded[0, 0, 1:], lower[1:] & torch.tensor([False, True, True]))
    assert mask(kv_offset=2) is not None


@pytest.mark.parametrize("scaling", [None, 0.25])
@pytest.mark.parametrize("n", [1, 5])
def test_attention_without_a_mask_is_causal_and_scaled_as_torch_does(n, scaling):
    generator = torch.Generator().manual_seed(n)
    query, key, value = torch.randn(3, 2, 4, n, 16, generator=generator)
    found, _ = arithmetic._attention(torch.nn.Module(), query, key, value, None, scaling=scaling)
    wanted = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, is_causal=True, scale=scaling
    )
    torch.testing.assert_close(found, wanted.transpose(1, 2))


class Weights(SimpleNamespace):
    """A model, as far as `speed_up` looks at it."""

    def __init__(self, kind="sdpa", n_bytes=2**31, device="cpu"):
        super().__init__(
            device=SimpleNamespace(type=device), dtype=torch.float32,
            config=SimpleNamespace(_attn_implementation=kind), linear=torch.nn.Linear(2, 2), n_bytes=n_bytes,
        )  # fmt: skip

    def parameters(self):
        return [SimpleNamespace(nbytes=self.n_bytes - 8), SimpleNamespace(nbytes=8)]

    def modules(self):
        return [self.linear]

    def set_attn_implementation(self, name):
        self.config._attn_implementation = name


@pytest.mark.parametrize(
    ("given", "kind", "packed"),
    [
        ({}, arithmetic.NAME, True),
        ({"kind": "eager"}, "eager", True),  # the model's own attention stays
        ({"n_bytes": 2**31 + 1}, "sdpa", False),
        ({"device": "cuda"}, "sdpa", False),
    ],
)
def test_up_to_two_gibibytes_on_a_processor_are_made_faster(given, kind, packed):
    model = arithmetic.speed_up(Weights(**given))
    assert model.config._attn_implementation == kind
    assert ("forward" in vars(model.linear)) == packed


def test_prompts_are_batched_up_to_so_many_tokens_and_with_answers_of_one_length():
    sizes = {0: (10, 5), 1: (10, 10), 2: (10, 20), 3: (10, 50), 4: (4, 2), 5: (10, 2), 6: (10, 2), 7: (10, 3)}
    # Two of 10 + 10 tokens are within 60, three of 20 + 10 are not; the answer of 4 is shorter.
    assert fitting([0, 1, 2, 3, 4, 5, 6, 7], 60, sizes.__getitem__) == [[0, 1], [2], [3], [4], [5, 6, 7]]
    assert fitting([0, 1], 40, sizes.__getitem__) == [[0, 1]]
    assert fitting([0, 1], 39, sizes.__getitem__) == [[0], [1]]
    assert fitting([], 60, sizes.__getitem__) == []


def test_equal_prompts_are_answered_together():
    assert together([0, 2, 3, 4], 2, "a?aba".__getitem__) == [[0, 2], [4], [3]]
    assert batches([], 2, lambda index: (0, 0)) == []


@pytest.mark.parametrize(
    ("token", "spelled"),
    [
        ("<0x0A>", b"\n"), ("<0xE9>", b"\xe9"), ("\u2581Paris", b" Paris"), ("abcdef", b"abcdef"),
        ("<0xabc", b"<0xabc"), ("ab0A>>", b"ab0A>>"), ("<0x0A>>", b"<0x0A>>"),
    ],
)  # fmt: skip
def test_a_single_byte_is_told_from_text(token, spelled):
    assert _piece(token) == spelled


def test_a_long_reason_is_cut():
    assert str(_uncompilable("x" * 400 + ".")).endswith(f"JSON Schema: {'x' * 300}.")
    assert str(_uncompilable("No. ")).endswith("JSON Schema: No.")


def test_the_nucleus_ends_with_the_token_that_reaches_the_share_exactly():
    logits = np.log([0.5, 0.25, 0.25])
    kept = np.isfinite(gumbel_scores(logits, 1.0, 0.5, np.random.default_rng(0)))
    assert kept.tolist() == [True, False, False]
    assert np.isfinite(gumbel_scores(logits, 1.0, 0.51, np.random.default_rng(0))).sum() == 2


@pytest.mark.parametrize(("pad", "end", "wanted"), [(3, 4, 3), (None, 4, 4), (None, None, 0), (0, 4, 0)])
def test_what_pads_a_prompt(pad, end, wanted):
    assert pad_token(SimpleNamespace(pad_token_id=pad, eos_token_id=end)) == wanted


def test_what_the_back_end_can_do_and_what_tells_its_weights(llm):
    can = llm.capabilities
    told = (can.token_logprobs, can.answer_logprob, can.screen, can.json_schema, can.seed, can.prefill)
    assert (told, can.batch, can.context_length, llm.options["batch_size"]) == ((True,) * 6, 1, 256, 1)
    assert llm.options["device"] == "cpu" and llm.options["dtype"] == "float32"
    assert llm.options["revision"]  # of the files of a model in a folder


@torch.inference_mode()
def test_a_screen_that_is_not_exact_where_it_must_be_is_not_used(llm, monkeypatch):
    model = llm._ready()
    true = screen.Screen.logprobs
    assert screen.Screen(model, "cpu").works
    monkeypatch.setattr(
        screen.Screen,
        "logprobs",
        lambda *given: [[tuple(p - 0.1 for p in one) for one in row] for row in true(*given)],
    )
    assert not screen.Screen(model, "cpu").works
    monkeypatch.setattr(screen.Screen, "logprobs", lambda *given: None)
    assert not screen.Screen(model, "cpu").works
