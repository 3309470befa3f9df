import pytest

from core.pipeline import Progress
from core.text.display import duration


def test_rate_and_time_left():
    now = [0.0]
    progress = Progress(lambda: now[0])
    assert (progress.rate, progress.seconds_left, progress.share) == (None, None, 0.0)
    now[0] = 10.0
    progress.update(5, 20, "question 1 of 4")
    assert (progress.rate, progress.seconds_left, progress.share) == (0.5, 30.0, 0.25)
    assert progress.line() == "5 of 20 calls, 2.0 s each, 30 s left · question 1 of 4"


def test_a_call_that_is_waited_for_slows_the_rate():
    now = [0.0]
    progress = Progress(lambda: now[0])
    now[0] = 10.0
    progress.update(5, 20)
    now[0] = 12.0  # as long as the others took
    assert progress.seconds_left == 30.0
    now[0] = 24.0  # 5 calls in 22 s, as it seems now
    assert progress.seconds_left == pytest.approx(66.0)


def test_calls_from_the_cache_do_not_shorten_the_time_left():
    """Of 300 calls 100 are cached; each of the others takes 2 s."""
    now = [0.0]
    progress = Progress(lambda: now[0])
    for cached in range(1, 101):
        progress.update(0, 300 - cached)
    assert progress.seconds_left is None
    for done in range(1, 51):
        now[0] += 2
        progress.update(done, 200)
    assert progress.rate == pytest.approx(0.5)
    assert progress.seconds_left == pytest.approx(300)
    # Met in the middle, they take what was counted for them off the time.
    for cached in range(1, 31):
        progress.update(50, 200 - cached)
    assert progress.rate == pytest.approx(0.5)
    assert progress.seconds_left == pytest.approx(240)


def test_time_that_went_by_before_the_first_call_counts_for_none():
    now = [0.0]
    progress = Progress(lambda: now[0])
    now[0] = 60.0  # a minute of reading the cache
    progress.update(0, 10)
    now[0] = 64.0
    progress.update(1, 10)
    assert progress.seconds_left == pytest.approx(36)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations_for_people(seconds, text):
    assert duration(seconds) == text
