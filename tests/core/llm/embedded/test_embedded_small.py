"""Parts of the embedded back end that need no model, or none but a stand-in for its sizes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers.masking_utils import causal_mask_function

from core.errors import BackendError, InputError
from core.llm import Message, Request, open_llm
from core.llm.embedded import arithmetic, loading, screen
from core.llm.embedded import llm as back_end
from core.llm.embedded.decoding import Grammars, Guided, _piece, _text_tokens, _uncompilable, gumbel_scores
from core.llm.embedded.loading import ChatFormat, pad_token
from core.llm.embedded.prefixes import _tokens_together
from core.llm.embedded.scoring import Prompts, batches, fitting, together
from tests.core.llm.embedded.tiny_model import tiny_model

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
        ("<0xabc", b"<0xabc"), ("ab0A>>", b"ab0A>>"), ("<0x0A>>", b"<0x0A>>"), ("<0xA>", b"<0xA>"),
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
    # Without one every token stays, however unlikely.
    assert np.isfinite(gumbel_scores(np.array([0.0, -800.0]), 1.0, 1.0, np.random.default_rng(0))).all()


@pytest.mark.parametrize(("pad", "end", "wanted"), [(3, 4, 3), (None, 4, 4), (None, None, 0), (0, 4, 0)])
def test_what_pads_a_prompt(pad, end, wanted):
    assert pad_token(SimpleNamespace(pad_token_id=pad, eos_token_id=end)) == wanted


class Letters:
    """A tokenizer whose tokens are texts; ``<>`` is a control mark."""

    def decode(self, tokens, *, skip_special_tokens):
        return "".join(token for token in tokens if not (skip_special_tokens and token == "<>"))


@pytest.mark.parametrize(
    ("tokens", "n"),
    [(["END"], 0), (["a", "END"], 1), (["a", "<>", "END", "b"], 1), (["a", "bEND"], 2), (["a", "b"], 2)],
)
def test_only_the_tokens_before_the_end_of_an_answer_count(tokens, n):
    assert _text_tokens(Letters(), tokens, ("END",)) == n


def test_a_prompt_and_its_answer_may_fill_the_context(llm):
    # 100 and 157 have a digit in common as binary numbers, so adding them is not joining them.
    assert llm._refusal(Request((), max_tokens=156), 100) is None
    assert "the model reads 256 in all" in llm._refusal(Request((), max_tokens=157), 100).error


@pytest.mark.parametrize(("own", "end"), [(9, 9), (0, 0), (None, 3)])
def test_a_schema_ends_with_the_tokenizer_s_own_mark(llm, monkeypatch, own, end):
    ended = []
    monkeypatch.setattr(
        back_end, "Grammars", lambda _, end: SimpleNamespace(guide=lambda _: ended.append(end))
    )
    monkeypatch.setattr(back_end.loading, "end_tokens", lambda *_: frozenset({3, 9}))
    monkeypatch.setattr(llm, "_tokenizer", SimpleNamespace(eos_token_id=own))
    monkeypatch.setattr(llm, "_grammars", None)
    llm._follow("{}")
    assert ended == [end]


@pytest.mark.parametrize(("batch", "sizes"), [(1, [10, 2]), (4, [4, 4, 4])])
def test_samples_of_a_prompt_are_drawn_so_many_together(llm, monkeypatch, batch, sizes):
    monkeypatch.setattr(llm, "_batch", batch)
    monkeypatch.setattr(llm, "_prefix_reader", lambda: None)
    requests = [Request((), temperature=1.0, seed=seed) for seed in range(12)]
    groups = list(llm._batches(requests, [[1, 2]] * 12, list(range(12)), None))
    assert [len(group) for group, _ in groups] == sizes


def test_each_answer_has_its_share_of_the_time(llm, monkeypatch):
    monkeypatch.setattr(back_end, "time", SimpleNamespace(perf_counter=iter([10.0, 16.0]).__next__))
    asked = [Request((Message("user", text),), max_tokens=1) for text in ("a", "b")]
    assert [one.latency for one in llm.generate(asked)] == [3.0, 3.0]


USER = (Message("user", "a b c"),)
LONGER = (Message("user", "a b c d"),)
ANSWERS, SCORES = ([Request(USER, max_tokens=2)] * 3,), ([USER, LONGER], ["x", "xyz"])
CALLS = [  # what is asked, of how many prompts at a time; which reading fails, of how many prompts, and whose length
    ("generate", ANSWERS, 1, 1, 3, (USER, 0)),
    ("score", SCORES, 1, 1, 1, (LONGER, 3)),
    ("score", SCORES, 4, 1, 2, (LONGER, 0)),
    ("score", SCORES, 4, 2, 2, (LONGER, 3)),
    ("screen", (LONGER, [USER, USER], ["x"]), 1, 1, 3, (LONGER, 0)),
]


@pytest.mark.parametrize(("method", "given", "batch", "failing", "n", "length"), CALLS)
def test_too_little_memory_says_how_much_was_asked_of_it(
    llm, monkeypatch, method, given, batch, failing, n, length
):
    reading = iter(range(1, 9))

    def full(*_):
        if next(reading) == failing:
            raise torch.OutOfMemoryError

    width = llm.count_tokens(length[0]) + length[1]
    monkeypatch.setattr(llm, "_batch", batch)
    monkeypatch.setattr(back_end, "Screen", full)
    hook = llm._ready().register_forward_pre_hook(full)
    try:
        with pytest.raises(
            BackendError, match=rf"with a batch of {n}, of up to {width} tokens each; choose a"
        ):
            getattr(llm, method)(*given)
    finally:
        hook.remove()


def test_a_model_in_half_precision_is_not_told_to_use_it(llm, monkeypatch):
    def told():
        with pytest.raises(BackendError) as caught, llm._computing(1, 2000):
            raise torch.OutOfMemoryError
        return str(caught.value).partition("batch of ")[2]

    assert told() == (
        "1, of up to 2,000 tokens each; choose a smaller batch size or model, or dtype bfloat16, whose answers "
        "are rounded."
    )
    monkeypatch.setattr(llm, "_dtype", "bfloat16")
    assert told() == "1, of up to 2,000 tokens each; choose a smaller batch size or model."


def test_a_batch_is_at_least_one_prompt(llm):
    with pytest.raises(InputError, match="batch_size must be at least 1, got 0"):
        open_llm("embedded", llm.name, batch_size=0)
    assert open_llm("embedded", llm.name, batch_size=1).options["batch_size"] == 1


@torch.inference_mode()
def test_no_screen_where_it_does_not_work(llm):
    found = screen.Screen(llm._ready(), "cpu")
    assert found.scores([1, 2, 3, 4], [[1, 3, 4]], [[5]])[1][0] is not None
    found.works = False
    assert found.scores([1, 2, 3, 4], [[1, 3, 4]], [[5]]) == [[None], [None]]


@pytest.mark.parametrize(("n_bytes", "sizes"), [(17_599, [1, 1, 1]), (17_600, [2, 1]), (8_799, [1, 1, 1])])
def test_so_many_rows_of_a_screen_as_fit_into_memory_are_read_together(monkeypatch, n_bytes, sizes):
    # A row: 2 × 3 × 100 logits and 8 × 5 × (10 + 30) states, of 4 bytes each: 8,800 bytes.
    config = SimpleNamespace(vocab_size=100, hidden_size=10, intermediate_size=30)
    config.get_text_config = lambda: config
    one = screen.Screen.__new__(screen.Screen)
    one._model = SimpleNamespace(config=config)
    monkeypatch.setattr(screen, "_PACK_BYTES", n_bytes)
    short = screen._Row(0, 0, [1], [0], [1], None, None)
    long = screen._Row(0, 0, [1] * 5, [0] * 5, [1] * 3, None, None)
    assert [len(pack) for pack in one._packs([short, long, short])] == sizes


def test_why_a_schema_cannot_be_followed(llm):
    with pytest.raises(InputError, match="to this JSON Schema: Unsupported type: nonsense"):
        Grammars(llm._tokenizer, llm._tokenizer.eos_token_id).guide('{"type": "nonsense"}')


def test_of_a_long_reason_the_first_line_is_told(llm, monkeypatch):
    import outlines_core

    def fails(*_):
        raise ValueError("too many states\n  at state 7")

    monkeypatch.setattr(outlines_core, "Index", fails)
    with pytest.raises(InputError, match=r"to this JSON Schema: too many states\.$"):
        Grammars(llm._tokenizer, llm._tokenizer.eos_token_id).guide('{"type": "string"}')


@pytest.mark.parametrize("prompts", [[[5, 9, 4], [7, 8]], [[5, 9, 4], [7]]])  # of one token nothing is kept
@torch.inference_mode()
def test_a_model_may_return_the_logits_of_all_tokens(llm, prompts):
    pairs = [(0, [1, 2]), (1, [3])]
    read = Prompts(llm._ready(), prompts, 0, "cpu")
    expected = read.answer_logprobs(pairs)
    read._accepted = read._accepted.keys() - {"logits_to_keep"}
    for found, wanted in zip(read.answer_logprobs(pairs), expected, strict=True):
        assert found == pytest.approx(wanted, abs=1e-5)


def test_what_a_screen_reads_again():
    # Three passages: without the first, the first eight tokens of the two behind it, and the last sixteen before the
    # question, which begins at 60; of what is kept all but those.
    one = screen.Screen.__new__(screen.Screen)
    one._device = "cpu"
    prompt, spans = list(range(100, 164)), [(0, 0), (2, 12), (12, 36), (36, 60)]
    row = one._row(prompt, spans[1], spans, 60, [7, 8, 9])
    again = [*range(12, 20), *range(36, 60)]
    assert row.tokens == [*(100 + i for i in again), *range(160, 164), 7, 8]
    assert row.places == [*again, *range(60, 66)] and row.at.tolist() == row.places
    assert row.kept.tolist() == [*range(20, 36)] and (row.begin, row.by) == (2, -10)
    whole = one._row(prompt, spans[0], spans, 60, [7])
    assert whole.tokens == [*range(160, 164)] and whole.kept.tolist() == [*range(60)]


def test_keys_turn_by_a_model_s_tables_of_frequencies():
    tables = {"a.inv_freq": torch.ones(4), "b": torch.ones(4), "c.inv_freq": torch.ones(2, 2)}
    model = SimpleNamespace(modules=list, named_buffers=tables.items)
    turns = screen._turns(model)
    assert [turn.neighbours for turn in turns] == [False, True]
    assert all(turn.frequencies is tables["a.inv_freq"] for turn in turns)


@pytest.mark.parametrize(
    ("given", "n"), [({}, 2**21), ({"num_key_value_heads": 2}, 2**22), ({"head_dim": 8}, 2**22)]
)
def test_so_many_tokens_are_kept_in_two_gibibytes(given, n):
    # Keys and values of 2 layers, 4 heads of 16 numbers, 4 bytes each: 1,024 bytes a token.
    config = SimpleNamespace(num_hidden_layers=2, num_attention_heads=4, hidden_size=64, **given)
    config.get_text_config = lambda: config
    assert _tokens_together(config) == n


def test_whether_the_hub_offers_a_model_or_it_was_downloaded_before(monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: None)
    assert loading.ask_hub("some/model", "some/model") is True

    def unreachable(*_, **__):
        raise OSError

    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", unreachable)
    monkeypatch.setattr(huggingface_hub, "try_to_load_from_cache", lambda *_: "/a/path/config.json")
    assert loading.ask_hub("some/model", "some/model") is False


@pytest.mark.parametrize("offered", [True, False])
def test_what_the_hub_does_not_offer_is_not_looked_for_there(monkeypatch, offered):
    asked = []

    def load(source, name, *, local):
        asked.append((source, name, local))
        raise BackendError("far enough")

    monkeypatch.setattr(loading, "ask_hub", lambda *_: offered)
    monkeypatch.setattr(loading, "load_tokenizer", load)
    with pytest.raises(BackendError, match="far enough"):
        open_llm("embedded", "some/model")
    assert asked == [("some/model", "some/model", not offered)]


def test_weights_that_cannot_be_read_are_one_sentence(tmp_path):
    broken = open_llm("embedded", tiny_model(tmp_path))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(BackendError, match=r"The model .* cannot be loaded: "):
        broken.generate([Request(USER, max_tokens=1)])


def test_control_marks_in_a_text_are_spelled_apart(llm):
    assert llm._chat._plain("a<|turn|>b<|end|>") == "a< |turn|>b< |end|>"


def test_a_mark_of_one_letter_cannot_be_spelled_apart():
    tokenizer = SimpleNamespace(added_tokens_decoder={}, all_special_tokens=["#", "<>", "<|x|>"])
    assert ChatFormat(tokenizer, "m")._plain("a#b<|x|><>") == "a#b< |x|>< >"


class Spelled:
    """A tokenizer of letters that drops a space before a text, and may have a token for a colon and a space."""

    added_tokens_decoder, all_special_tokens = {}, ()

    def __init__(self, template, joins):
        self.chat_template, self._joins = template, joins

    def __call__(self, text, add_special_tokens=True):
        text = text.replace(": ", "=") if self._joins else text
        return {"input_ids": ["<s>"] * add_special_tokens + list(text.lstrip(" "))}

    def apply_chat_template(self, turns, *, add_generation_prompt, tokenize, **_):
        text = "".join(turn["content"] for turn in turns) + "|" * add_generation_prompt
        return self(text, add_special_tokens=False) if tokenize else text


@pytest.mark.parametrize(
    ("template", "joins", "turns", "prompt", "answer"),
    [
        (None, False, {"user": "Q:"}, ["<s>", "Q", ":"], [" ", "y"]),
        # The model has read the colon by itself: what it has read no token can take back.
        (None, True, {"user": "Q:"}, ["<s>", "Q", ":"], ["y"]),
        ("own", False, {"user": "Q:"}, ["Q", ":", "|"], ["y"]),
        ("own", False, {"user": "Q:", "assistant": "A:"}, ["Q", ":", "A", ":"], [" ", "y"]),
    ],
)
def test_a_space_separates_an_answer_from_what_was_begun(template, joins, turns, prompt, answer):
    messages = [Message(role, text) for role, text in turns.items()]
    assert ChatFormat(Spelled(template, joins), "m").encode_answer(messages, " y ") == (prompt, answer)


@pytest.mark.parametrize("neighbours", [False, True])
def test_a_key_turns_in_the_dimensions_that_have_a_frequency(neighbours):
    states = np.random.default_rng(0).normal(size=(2, 8))  # the last two have none
    frequencies = np.array([1.0, 0.1, 0.01])
    pairs = [(0, 1), (2, 3), (4, 5)] if neighbours else [(0, 3), (1, 4), (2, 5)]
    expected = states.copy()
    for (one, two), frequency in zip(pairs, frequencies, strict=True):
        turned = (states[:, one] + 1j * states[:, two]) * np.exp(-5j * frequency)
        expected[:, one], expected[:, two] = turned.real, turned.imag
    found = screen._Turn(torch.from_numpy(frequencies), neighbours).moved(torch.from_numpy(states), -5)
    assert found.numpy() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("width", "words"), [(32, 1), (33, 2), (64, 2)])
def test_there_is_room_for_every_token_of_the_model(width, words):
    sizes = []
    guide = SimpleNamespace(write_mask_into=lambda at, size, each: sizes.append((size, each)))
    allowed = Guided(guide, end=width - 1).allowed(width)
    assert sizes == [(words, 4)]
    assert allowed.tolist() == [False] * (width - 1) + [True]  # a guide that allows nothing ends the answer


def test_an_answer_is_complete_once_and_for_all():
    said = []
    guide = SimpleNamespace(advance=lambda token, **_: said.append(token), is_finished=lambda: False)
    guided = Guided(guide, end=9)
    for token in (1, 9, 2, 3):
        guided.advance(token)
    assert said == [1] and guided.complete


def test_what_a_screen_keeps_is_as_long_as_its_tokens():
    keys = torch.zeros(1, 2, 5, 4)
    assert screen._Kept(keys, keys, None, ()).get_seq_length() == 5


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
