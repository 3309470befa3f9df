import numpy as np
import pytest
import torch

from core.llm import Request
from core.llm.embedded.decoding import Ending, gumbel_scores, to_completion


def draws(top_p, n=4000, temperature=1.0):
    logits = np.log([0.5, 0.3, 0.15, 0.05])
    generator = np.random.default_rng(0)
    picks = [int(np.argmax(gumbel_scores(logits, temperature, top_p, generator))) for _ in range(n)]
    return np.bincount(picks, minlength=4) / n


def test_sampling_follows_the_distribution():
    # Standard error of a share at n = 4000 is below 0.008.
    assert draws(1.0) == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)


def test_the_nucleus_keeps_the_fewest_tokens_that_reach_the_share():
    # 0.5 + 0.3 reaches 0.7, so the last two are never drawn and the rest is 5 : 3.
    assert draws(0.7) == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)
    assert draws(0.4) == pytest.approx([1, 0, 0, 0])


def test_a_low_temperature_sharpens():
    # Probabilities squared and normalised: 0.25, 0.09, 0.0225, 0.0025 of 0.365.
    assert draws(1.0, temperature=0.5) == pytest.approx([0.685, 0.247, 0.062, 0.007], abs=0.03)


def test_one_seed_gives_one_draw():
    logits = np.linspace(0, 1, 50)
    first, second = (gumbel_scores(logits.copy(), 1.0, 0.9, np.random.default_rng(7)) for _ in range(2))
    assert np.array_equal(first, second)


def test_what_is_forbidden_is_never_drawn():
    logits = np.array([-np.inf, 0.0, -np.inf, 0.0])
    generator = np.random.default_rng(0)
    for top_p in (1.0, 0.4):
        picks = {int(np.argmax(gumbel_scores(logits, 2.0, top_p, generator))) for _ in range(200)}
        assert picks <= {1, 3}


class Letters:
    """A tokenizer of letters: token 97 is "a"; 0 is its end token, 1 its padding, 2 begins a turn."""

    def decode(self, tokens, skip_special_tokens):
        return "".join(chr(token) for token in tokens if token > 2 or not skip_special_tokens)


@pytest.mark.parametrize(
    ("stop", "ended"), [((), False), (("b",), True), (("\2",), False), (("c", "ab"), True)]
)
def test_an_answer_ends_at_its_own_text_not_at_a_mark_of_the_model(stop, ended):
    row = [[ord(letter) for letter in "a\2b"]]
    ending = Ending(Letters(), [Request((), stop=stop)], [None], 0)
    assert ending(torch.tensor(row), None).tolist() == [ended] and ending.lengths == [3 if ended else None]


@pytest.mark.parametrize(
    ("row", "length", "stop", "expected"),
    [
        ("ab", None, (), ("ab", "length", 2, 2)),
        ("ab\0", None, (), ("ab", "stop", 2, 2)),
        ("ab\0\1\1", None, (), ("ab", "stop", 2, 2)),
        # A mark of the model's own is no text of the answer.
        ("a\2b\0", None, (), ("ab", "stop", 3, 3)),
        (" ab\n", 4, ("\n",), ("ab", "stop", 4, 3)),
        # The batch went on; what it was padded with is not counted.
        (" ab\n\1\1", 4, ("\n",), ("ab", "stop", 4, 3)),
        ("\nab\n", 4, ("\n",), ("ab", "stop", 4, 3)),
        ("abEND", 5, ("END",), ("ab", "stop", 5, 2)),
        ("\0", None, (), ("", "stop", 0, 0)),
        # The schema was fulfilled with the last token.
        ("12", 2, (), ("12", "stop", 2, 2)),
    ],
)
def test_an_answer_ends_where_its_row_ended(row, length, stop, expected):
    tokens = [ord(letter) for letter in row]
    numbers = [-float(n) for n in range(len(tokens))]
    done = to_completion(Letters(), Request((), stop=stop), tokens, {0}, length, numbers)
    text, reason, n_tokens, n_logprobs = expected
    assert (done.text, done.finish_reason, done.completion_tokens) == (text, reason, n_tokens)
    assert (done.prompt_tokens, done.latency) == (0, 0.0)  # whoever sent the prompt knows
    assert done.logprobs == tuple(numbers[:n_logprobs])
    assert to_completion(Letters(), Request((), stop=stop), tokens, {0}, length, None).logprobs is None
