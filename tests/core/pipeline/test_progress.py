import pytest

from core.pipeline import Progress, duration


def test_rate_and_time_left():
    now = [0.0]
    progress = Progress(lambda: now[0])
    assert (progress.rate, progress.seconds_left, progress.share) == (None, None, 0.0)
    now[0] = 10.0
    progress.update(5, 20, "question 1 of 4")
    assert (progress.rate, progress.seconds_left, progress.share) == (0.5, 30.0, 0.25)
    assert progress.line() == "5 of 20 calls, 2.0 s each, 30 s left · question 1 of 4"


def test_a_burst_from_the_cache_is_forgotten():
    now = [0.0]
    progress = Progress(lambda: now[0])
    for done in range(1, 101):
        progress.update(done, 300)
    for done in range(101, 201):
        now[0] += 2
        progress.update(done, 300)
    assert progress.rate == pytest.approx(0.5)
    assert progress.seconds_left == pytest.approx(200)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")],
)
def test_durations_for_people(seconds, text):
    assert duration(seconds) == text
