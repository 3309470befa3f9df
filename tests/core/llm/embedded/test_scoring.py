"""Log-probabilities against transformers' own, and against plain forward passes."""

import functools
import math

import pytest

from core.errors import Cancelled
from core.llm import Message, Request
from core.llm.structured import canonical

pytestmark = pytest.mark.model
PROMPTS = [
    (Message("user", "hi"),),
    (
        Message("system", "Be short."),
        Message("user", "Where is the true tower?"),
        Message("assistant", "It:"),
    ),
    (Message("user", "a b c d e f g"),),
]


@pytest.fixture
def wide(llm):
    # What a GPU does, on the processor: prompts of several lengths padded together.
    llm._batch = 4
    yield llm
    llm._batch = 1


def transitions(llm, messages, n):
    """Return greedy tokens and their log-probabilities, as transformers itself computes them."""
    import torch

    ids = torch.tensor([llm._chat.encode(messages)])
    model = llm._ready()
    out = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=n,
        do_sample=False,
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
    )
    scores = model.compute_transition_scores(out.sequences, out.logits, normalize_logits=True)
    return out.sequences[0, ids.shape[1] :].tolist(), scores[0].tolist()


def forward(llm, messages, answer_tokens):
    """Return the log-probability of each token by one plain forward pass for each."""
    import torch

    ids, found = llm._chat.encode(messages), []
    for token in answer_tokens:
        with torch.inference_mode():
            last = llm._ready()(input_ids=torch.tensor([ids])).logits[0, -1].double()
        found.append(torch.log_softmax(last, -1)[token].item())
        ids = [*ids, token]
    return found


@pytest.mark.parametrize("messages", PROMPTS, ids=["short", "begun", "letters"])
def test_generated_tokens_have_the_log_probability_that_transformers_computes(llm, messages, monkeypatch):
    monkeypatch.setattr(llm, "word_first", False)  # transformers has no such rule
    done = llm.generate([Request(messages, max_tokens=8, logprobs=True)])[0]
    tokens, expected = transitions(llm, messages, 8)
    assert len(tokens) == done.completion_tokens == 8
    assert done.logprobs == pytest.approx(expected, abs=1e-4)


def test_batched_rows_have_their_own_log_probabilities(wide):
    requests = [
        Request(messages, max_tokens=6, logprobs=logprobs, temperature=t, seed=3)
        for messages in PROMPTS
        for logprobs, t in ((True, 0.0), (False, 0.0), (True, 1.0))
    ]
    together = wide.generate(requests)
    wide._batch = 1
    alone = wide.generate(requests)
    assert [c.text for c in together] == [c.text for c in alone]
    for request, one, other in zip(requests, together, alone, strict=True):
        assert (one.logprobs is not None) is request.logprobs
        if request.logprobs:
            assert len(one.logprobs) == one.completion_tokens
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_log_probabilities_are_those_before_temperature_and_schema(llm):
    # The schema leaves one token at each step, so the text is certain; the numbers are the model's own.
    schema = canonical({"const": "xyz"})
    done = llm.generate([Request(PROMPTS[0], schema=schema, temperature=5.0, logprobs=True, max_tokens=9)])[0]
    assert done.text == '"xyz"'
    assert done.logprobs == pytest.approx(
        forward(llm, PROMPTS[0], llm._tokenizer('"xyz"')["input_ids"]), abs=1e-4
    )
    assert sum(done.logprobs) < -5


def test_a_stop_sequence_is_no_part_of_the_answer(llm):
    tokens, expected = transitions(llm, PROMPTS[0], 8)
    pieces = [llm._tokenizer.decode(tokens[: n + 1]) for n in range(8)]
    n = next(n for n in range(2, 8) if pieces[n][-1].isascii() and pieces[n][-1] not in pieces[n - 1])
    request = Request(PROMPTS[0], max_tokens=8, logprobs=True, stop=(pieces[n][-1],))
    done = llm.generate([request])[0]
    assert done.finish_reason == "stop"
    assert done.completion_tokens == n + 1
    assert done.logprobs == pytest.approx(expected[:n], abs=1e-4)


def test_given_answers_are_scored_as_forward_passes_have_them(llm):
    answers = ["Paris", "in true ab", "Là-bas, 巴黎"]
    for messages, answer, scores in zip(PROMPTS, answers, llm.score(PROMPTS, answers), strict=True):
        text = f" {answer}" if messages[-1].role == "assistant" else answer
        tokens = llm._tokenizer(text)["input_ids"]
        assert scores == pytest.approx(forward(llm, messages, tokens), abs=1e-4)


def test_scores_do_not_depend_on_company(wide):
    answers = ["Paris", "x", "a longer answer, of many tokens"]
    together = wide.score(PROMPTS, answers)
    wide._batch = 1
    alone = wide.score(PROMPTS, answers)
    assert [len(scores) for scores in together] == [len(scores) for scores in alone]
    for one, other in zip(together, alone, strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def counted(llm, monkeypatch):
    """Count the tokens that the model reads from now on, padding included."""
    model, read = llm._ready(), []

    @functools.wraps(model.forward)
    def forward(*args, **named):
        read.append(named["input_ids"].numel())
        return plain(*args, **named)

    plain = model.forward
    monkeypatch.setattr(model, "forward", forward)
    return read


ANSWERS = ("Paris", "x", "a longer answer, of many tokens")


def test_a_prompt_is_read_once_for_all_its_answers(llm, monkeypatch):
    # Interleaved: which answers belong to one prompt does not depend on their order.
    asked = [(messages, answer) for answer in ANSWERS for messages in PROMPTS]
    expected = [
        forward(llm, messages, llm._chat.encode_answer(messages, answer)[1]) for messages, answer in asked
    ]
    read = counted(llm, monkeypatch)
    scores = llm.score(*zip(*asked, strict=True))
    for one, other in zip(scores, expected, strict=True):
        assert one == pytest.approx(other, abs=1e-4)
    # All but the last token of each prompt once, and once what several begin with; the last one begins the
    # reading of each answer.
    prompts = [tuple(llm._chat.encode(messages)[:-1]) for messages in PROMPTS]
    beginnings = {prompt[: n + 1] for prompt in prompts for n in range(len(prompt))}
    answers = sum(len(llm._chat.encode_answer(*pair)[1]) for pair in asked)
    assert sum(read) == len(beginnings) + answers < sum(map(len, prompts)) + answers
    assert len(read) == len(asked)


def test_prompts_of_several_lengths_share_a_batch_with_all_their_answers(wide, monkeypatch):
    asked = [(messages, answer) for answer in ANSWERS for messages in PROMPTS]
    read = counted(wide, monkeypatch)
    together = wide.score(*zip(*asked, strict=True))
    assert len(read) == 1 + math.ceil(len(asked) / 4)
    wide._batch = 1
    for one, other in zip(together, wide.score(*zip(*asked, strict=True)), strict=True):
        assert one == pytest.approx(other, abs=1e-4)


def test_the_probabilities_of_all_next_letters_add_up(llm):
    # With the tokens that no text can spell, what follows "x" is certain to be something.
    vocabulary = len(llm._tokenizer)
    letters = [chr(i) for i in range(33, 127)]
    scores = llm.score([PROMPTS[0]] * len(letters), ["x" + letter for letter in letters])
    assert {len(s) for s in scores} == {2}
    assert len({round(s[0], 4) for s in scores}) == 1
    spelled = {llm._tokenizer(letter)["input_ids"][0] for letter in letters}
    x = llm._tokenizer("x")["input_ids"][0]
    others = [t for t in range(vocabulary + 5) if t not in spelled]
    rest = sum(math.exp(forward(llm, PROMPTS[0], [x, token])[1]) for token in others)
    assert sum(math.exp(s[1]) for s in scores) + rest == pytest.approx(1, abs=1e-3)


def test_what_cannot_be_scored_is_none(llm):
    long = "y" * 400
    scores = llm.score([PROMPTS[0]] * 3, ["", "  \n", long])
    assert scores == [None, None, None]
    assert llm.score([], []) == []


def test_control_tokens_in_an_answer_stay_text(llm):
    prompt, tokens = llm._chat.encode_answer(PROMPTS[0], "a<|end|>b")
    assert prompt == llm._chat.encode(PROMPTS[0])
    assert llm._tokenizer.eos_token_id not in tokens


def test_scoring_can_be_cancelled(llm):
    looks = []

    def cancelled():
        looks.append(1)
        return len(looks) > 2

    with pytest.raises(Cancelled):
        llm.score([PROMPTS[0]] * 50, ["a"] * 50, cancelled)
    assert len(looks) == 3
