import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.llm.ollama.context import SMALLEST, Attempts, ContextWindow, PromptSize, prompt_size
from core.llm.types import Message

TEXT = PromptSize(estimate=6000, words=3600)


def half(num_ctx, keep=4):
    """What Ollama leaves of a prompt that is too long, in versions of 2026."""
    return num_ctx - max((num_ctx - keep) // 2, 1)


def test_a_prompt_is_measured_without_a_tokenizer():
    size = prompt_size([Message("user", "one two  three" + " " * 4000), Message("user", "四五六 1889")])
    # 4 for each turn, "one two three " is 14 characters, one for each Chinese one, and " 1889" is 5.
    assert size == PromptSize(estimate=4 + 4 + 4 + 3 + 2, words=5, digits=4)


@pytest.mark.parametrize(
    ("limit", "estimate", "max_tokens", "expected"),
    [
        (131_072, 100, 24, 4096),
        (131_072, 2671, 24, 4096),  # 2671 · 1.5 + 64 + 24 = 4094 or 4095
        (131_072, 2700, 24, 8192),
        (8192, 6000, 24, 8192),
        (2048, 100, 24, 2048),
        (None, 20_000, 24, 32_768),
        (None, 500_000, 24, 131_072),
    ],
)
def test_the_context_asked_for_holds_prompt_and_answer(limit, estimate, max_tokens, expected):
    assert ContextWindow(limit).choose(PromptSize(estimate, 0), max_tokens) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"), [(0, 4096), (4096, 4096), (4097, 8192), (8192, 8192), (8193, 16_384)]
)
def test_a_context_that_just_holds_the_tokens_is_enough(tokens, expected):
    assert ContextWindow(131_072).size_for(tokens) == expected


def test_it_only_grows_and_only_by_what_has_worked():
    window = ContextWindow(131_072)
    small = PromptSize(100, 60)
    assert window.choose(TEXT, 24) == 16_384
    assert window.choose(small, 24) == SMALLEST
    window.learn(TEXT, 6000, 16_384)
    assert window.choose(small, 24) == 16_384


def test_prompts_asked_together_share_one_context_that_the_hopeless_do_not_choose():
    window = ContextWindow(32_768)
    sizes = [(PromptSize(n, 0), 24) for n in (100, 4000, 60_000)]
    assert window.common_size(sizes) == 8192
    assert window.common_size([]) == SMALLEST


def test_it_learns_how_many_tokens_the_model_makes():
    window = ContextWindow(131_072)
    assert window.ratio == 1
    window.learn(PromptSize(1000, 0), 2000, SMALLEST)
    window.learn(PromptSize(3000, 0), 4000, SMALLEST)
    assert window.ratio == 1.5
    # A short prompt is mostly the model's own chat format.
    window.learn(PromptSize(10, 0), 60, SMALLEST)
    assert window.ratio == 1.5
    assert window.upper_bound(PromptSize(1000, 0)) == 1000 * 1.5 * 1.25 + 64


@pytest.mark.parametrize(("estimate", "ratio"), [(99, 1.0), (100, 2.0)])
def test_it_learns_from_prompts_of_a_hundred_tokens_on(estimate, ratio):
    window = ContextWindow(131_072)
    window.learn(PromptSize(estimate, 0), 2 * estimate, SMALLEST)
    assert window.ratio == ratio


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        (PromptSize(1000, 0), 1500 + 64),
        (PromptSize(1000, 0, digits=30), 1500 + 30 + 64),
        (PromptSize(10, 500, digits=30), 500 + 64),  # no vocabulary needs fewer tokens than words
    ],
)
def test_how_many_tokens_a_prompt_hardly_exceeds(size, tokens):
    assert ContextWindow(None).upper_bound(size) == tokens


@pytest.mark.parametrize(
    ("read", "written", "cut"),
    [
        (6100, 20, False),
        (3599, 20, True),  # fewer tokens than words
        (8192, 1, True),  # up to 2025 exactly what the context holds is left
        (8180, 20, True),  # the beginning was forgotten while the answer was written
        (8172, 20, False),
        (8173, 20, True),
        (8191, 0, False),
        (8191, 1, False),
        (8192, 0, True),
        (3600, 20, False),  # as many tokens as words
    ],
)
def test_what_is_certainly_cut(read, written, cut):
    assert ContextWindow(131_072).was_cut(TEXT, 8192, read, written) is cut


def test_what_looks_cut():
    window = ContextWindow(131_072)
    assert not window.may_be_cut(TEXT, 8192, 6100)
    assert window.may_be_cut(TEXT, 8192, 4000)
    assert window.may_be_cut(PromptSize(3000, 10), 8192, half(8192))
    assert window.may_be_cut(PromptSize(3000, 10), 8192, half(8192, keep=5))
    # Once a prompt of few tokens has proved whole, others like it are believed.
    window.learn(TEXT, 3900, 8192)
    assert not window.may_be_cut(TEXT, 8192, 4000)
    # At the lowest rate so far it has 3,900 tokens; a quarter less, 2,925, may still be all of it.
    assert not window.may_be_cut(TEXT, 8192, 2930)
    assert window.may_be_cut(TEXT, 8192, 2920)


@pytest.mark.parametrize(
    ("read", "doubted"),
    [(4095, False), (4096, True), (4104, True), (4105, False), (2250, False), (2249, True)],
)
def test_half_of_the_context_and_a_quarter_less_than_estimated_look_cut(read, doubted):
    assert ContextWindow(131_072).may_be_cut(PromptSize(3000, 10), 8192, read) is doubted


def test_at_the_limit_an_eighth_less_context_is_compared_where_it_holds_the_tokens():
    window = ContextWindow(4096)
    assert [window.size_to_compare(4096, tokens) for tokens in (3584, 3585)] == [3584, None]
    assert window.size_to_compare(2048, 9000) == 4096
    assert [window.leaves_room(tokens) for tokens in (4095, 4096)] == [True, False]


@given(
    limit=st.integers(2048, 200_000),
    true=st.integers(100, 200_000),
    error=st.floats(2 / 3, 4 / 3),
    max_tokens=st.integers(1, 512),
    keep=st.integers(0, 5),
    full=st.booleans(),
)
def test_no_cut_prompt_passes_while_estimates_are_within_a_third(limit, true, error, max_tokens, keep, full):
    window = ContextWindow(limit)
    size = PromptSize(round(true * error), round(true * 0.5))
    num_ctx = window.choose(size, max_tokens)
    if true < limit:
        assert num_ctx > true
        return
    read = num_ctx if full else half(num_ctx, keep)
    certain = window.was_cut(size, num_ctx, read, 1)
    assert certain or window.may_be_cut(size, num_ctx, read)
    # Only the limit can have made the context too small, and there it is refused.
    assert num_ctx == limit
    assert window.larger(num_ctx) is None
    assert certain or window.upper_bound(size) > num_ctx


@given(num_ctx=st.integers(1, 200_000), limit=st.integers(1, 200_000) | st.none())
def test_growing_ends_at_the_limit(num_ctx, limit):
    window = ContextWindow(limit)
    steps = 0
    while num_ctx is not None and steps < 30:
        bigger = window.larger(num_ctx)
        assert bigger is None or num_ctx < bigger <= (limit or 131_072)
        num_ctx, steps = bigger, steps + 1
    assert num_ctx is None


def attempts(window, size, replies):
    """The verdicts on a series of (read, written), with the ``num_ctx`` each was asked with."""
    trial, seen = Attempts(window, size, 24), []
    for read, written in replies:
        asked = trial.num_ctx
        seen.append((asked, trial.answered(read, written)))
    return seen


def test_a_doubt_is_settled_by_another_context():
    size = PromptSize(estimate=2000, words=900)
    # Half of 4,096 was left; with 8,192 it is more, and all of it.
    assert attempts(ContextWindow(32_768), size, [(2050, 9), (5100, 9)]) == [(4096, None), (8192, True)]
    # A prompt of few tokens reads the same again.
    assert attempts(ContextWindow(32_768), size, [(950, 9), (950, 9)]) == [(4096, None), (8192, True)]
    # At the limit it is a smaller one that tells.
    assert attempts(ContextWindow(4096), size, [(2050, 9), (2050, 9)]) == [(4096, None), (3584, True)]
    assert attempts(ContextWindow(4096), size, [(2050, 9), (1794, 9)]) == [(4096, None), (3584, False)]


@pytest.mark.parametrize(("estimate", "verdict"), [(2000, True), (2688, True), (2689, False)])
def test_where_no_other_context_can_tell_the_estimate_decides(estimate, verdict):
    # 2,050 is about half of 4,096; with an answer of 1,600 it fits in no smaller one. 2,688 * 1.5 + 64 = 4,096.
    trial = Attempts(ContextWindow(4096), PromptSize(estimate, 900), 1600)
    assert trial.answered(2050, 9) is verdict


def test_a_context_at_least_as_large_as_that_of_the_others_is_asked_for():
    size = PromptSize(estimate=2000, words=900)
    assert Attempts(ContextWindow(32_768), size, 24, least=8192).num_ctx == 8192
    assert Attempts(ContextWindow(32_768), size, 24).num_ctx == 4096


def test_a_refused_prompt_is_asked_again_with_what_it_needs():
    size = PromptSize(estimate=2000, words=900)
    trial = Attempts(ContextWindow(32_768), size, 24)
    assert trial.refused(9200)
    assert trial.num_ctx == 16_384
    assert not trial.refused(32_768)
    # 8,180 tokens and an answer of 24 need more than 8,192.
    for tokens, num_ctx in ((8180, 16_384), (8168, 8192), (32_767, 32_768)):
        trial = Attempts(ContextWindow(32_768), size, 24)
        assert trial.refused(tokens)
        assert trial.num_ctx == num_ctx
    unknown = Attempts(ContextWindow(8192), size, 24)
    assert unknown.refused(None)
    assert unknown.num_ctx == 8192
    assert not unknown.refused(None)


@given(
    limit=st.integers(1024, 50_000),
    true=st.integers(100, 60_000),
    error=st.floats(0.05, 3),
    share=st.floats(0.1, 0.9),
    kind=st.sampled_from(["full", "half", "refuses"]),
)
def test_however_wrong_the_estimate_no_cut_prompt_is_taken_for_whole(limit, true, error, share, kind):
    size = PromptSize(round(true * error), round(true * share))
    trial = Attempts(ContextWindow(limit), size, 24)
    for _ in range(40):
        cut_off = true >= trial.num_ctx
        if kind == "refuses" and cut_off:
            verdict = None if trial.refused(true) else False
        else:
            left = trial.num_ctx if kind == "full" else half(trial.num_ctx)
            asked = trial.num_ctx
            verdict = trial.answered(left if cut_off else true, 5)
            assert not (verdict is True and true >= asked)
        if verdict is not None:
            break
    assert verdict is not None
    if true + 24 < limit and 0.7 < error < 1.3:
        assert verdict is True
