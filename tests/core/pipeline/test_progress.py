import io
import sys
from functools import partial
from types import SimpleNamespace

import pytest

from core.pipeline import Progress, ProgressLine
from core.text.display import duration


def test_rate_and_time_left():
    now = [0.0]
    progress = Progress(lambda: now[0])
    assert (progress.rate, progress.seconds_left, progress.share) == (None, None, 0.0)
    now[0] = 10.0
    progress.update(5, 20, "question 1 of 4")
    assert (progress.rate, progress.seconds_left, progress.share) == (0.5, 30.0, 0.25)
    assert progress.line() == "5 of 20 calls, 2.0 s each, 30 s left · question 1 of 4"
    now[0] = 12.5
    assert progress.line() == "5 of 20 calls, 2.1 s each, 32 s left · question 1 of 4"


def test_what_took_no_time_has_no_rate():
    progress = Progress(lambda: 3.0)
    progress.update(5, 20, "from a file")
    assert (progress.rate, progress.seconds_left) == (None, None)
    assert progress.line() == "5 of 20 calls · from a file"


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


def test_a_rate_of_one_or_more_is_told_by_the_second():
    now = [0.0]
    progress = Progress(lambda: now[0], unit="answers")
    assert progress.line() == "0 of 0 answers"
    now[0] = 4.0
    progress.update(4, 2000)
    assert progress.line() == "4 of 2,000 answers, 1.0 a second, 33 min 16 s left"
    progress.update(10, 2000)
    assert progress.line() == "10 of 2,000 answers, 2.5 a second, 13 min 16 s left"
    assert (progress.seconds, progress.share) == (4.0, 0.005)
    progress.update(12, 10)  # more than there were thought to be
    assert progress.share == 1.0


@pytest.mark.parametrize(("quick", "rate"), [(58, 59 / (58 + 10)), (59, 1.0), (70, 1.0)])
def test_the_rate_is_that_of_the_last_sixty(quick, rate):
    now = [0.0]
    progress = Progress(lambda: now[0])
    for done, seconds in enumerate([10.0] * 100 + [1.0] * quick, start=1):
        now[0] += seconds
        progress.update(done, 1000)
        progress.update(done, 1000, "the same once more is no progress")
    assert progress.rate == pytest.approx(rate)


class Stream(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    def taken(self):
        text = self.getvalue()
        self.seek(0)
        self.truncate()
        return text


def shown(monkeypatch, terminal):
    """A line on standard error, what is on it, and the time."""
    now, stream = [1000.0], Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr("core.pipeline.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr("core.pipeline.progress.Progress", partial(Progress, lambda: now[0]))
    return ProgressLine("answers"), stream, now


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_is_redrawn_on_a_terminal_and_added_to_a_log(monkeypatch, terminal):
    line, stream, now = shown(monkeypatch, terminal)
    first, wait = (0.0, 0.2) if terminal else (15.0, 15.0)

    def told(done, after):
        now[0] += after
        line(done, 30, f"question {done} of 30")
        return stream.taken()

    def expected(text):
        return f"\r\x1b[K{text}" if terminal else f"{text}\n"

    if not terminal:  # a job that is soon over is not in the log
        assert told(0, 14.9) == ""
        first = 0.125
    assert told(0, first) == expected("0 of 30 answers · question 0 of 30")
    assert told(1, wait - 0.125) == ""
    assert told(2, 0.126).endswith(expected("question 2 of 30").removeprefix("\r\x1b[K"))
    assert told(3, 0.0) == ""
    line.clear()
    assert stream.taken() == ("\r\x1b[K" if terminal else "")
    now[0] = 1090.0
    line.end()
    assert stream.taken() == ("\r\x1b[K" if terminal else "") + "3 answers in 1 min 30 s.\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_terminal_line_is_cut_and_nothing_is_left_where_nothing_was_done(monkeypatch, terminal):
    line, stream, now = shown(monkeypatch, terminal)
    line.clear()
    line.end()
    assert stream.taken() == ""
    now[0] += 20.0
    line(0, 5, "x" * 500 + "\nand more")
    text = stream.taken()
    assert len(text) == (len("\r\x1b[K") + 160 if terminal else text.index("\n") + 1)
    line.end()
    assert stream.taken() == ("\r\x1b[K" if terminal else "")


@pytest.mark.parametrize(("done", "said"), [(1, "1 answer in 0 s."), (1234, "1,234 answers in 0 s.")])
def test_the_total_is_told_in_words(monkeypatch, done, said):
    line, stream, _ = shown(monkeypatch, terminal=False)
    line(done, done, "")
    line.end()
    assert stream.taken() == f"{said}\n"
