import numpy as np
import pytest

from core.llm.decoding import cut, gumbel_scores


@pytest.mark.parametrize(
    ("text", "stop", "expected"),
    [
        (" Paris\nParis is", ("\n",), ("Paris", True)),
        ("\n\n Paris", ("\n",), ("Paris", False)),
        ("a; b. c", (".", ";"), ("a", True)),
        ("Paris", (), ("Paris", False)),
        ("  \n ", ("\n",), ("", False)),
        ("Paris", ("",), ("Paris", False)),
    ],
)
def test_cut_ends_at_the_first_stop_after_the_answer_began(text, stop, expected):
    assert cut(text, stop) == expected


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
