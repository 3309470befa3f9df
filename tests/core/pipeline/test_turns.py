"""Who works a model waits for others of the same model, and for nobody else."""

import threading
import time

import pytest

from core.errors import Cancelled
from core.pipeline import ModelTurns


def until(condition):
    deadline = time.monotonic() + 10
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert condition()


class Job:
    """Holds a turn in a thread of its own until it is let go."""

    def __init__(self, turns, model, order=None):
        self.go, self.cancel, self.error = threading.Event(), threading.Event(), None
        self.entered = threading.Event()
        self.turn = turns.turn(model, self.cancel.is_set)
        self.thread = threading.Thread(target=self.work, args=(order if order is not None else [],))
        self.thread.start()

    def work(self, order):
        try:
            with self.turn:
                order.append(self)
                self.entered.set()
                self.go.wait(10)
        except Cancelled as error:
            self.error = error

    def end(self):
        self.go.set()
        self.thread.join(10)
        assert not self.thread.is_alive()


def test_jobs_of_a_model_take_turns_in_order_and_know_their_place():
    turns, order = ModelTurns(), []
    jobs = []
    for place in range(4):
        jobs.append(Job(turns, "m", order))
        until(jobs[-1].entered.is_set if not place else lambda p=place: jobs[-1].turn.place == p)
    assert [job.turn.place for job in jobs] == [0, 1, 2, 3]
    assert [job.entered.is_set() for job in jobs] == [True, False, False, False]
    jobs[2].cancel.set()
    jobs[2].thread.join(10)
    assert isinstance(jobs[2].error, Cancelled)
    until(lambda: jobs[3].turn.place == 2)
    for job in (jobs[0], jobs[1], jobs[3]):
        until(job.entered.is_set)
        job.end()
    assert order == [jobs[0], jobs[1], jobs[3]]


def test_another_model_and_no_model_do_not_wait():
    turns = ModelTurns()
    first = Job(turns, "m")
    others = [Job(turns, "n"), Job(turns, None), Job(turns, None)]
    for job in (first, *others):
        assert job.entered.wait(10)
        assert job.turn.place == 0
    for job in (first, *others):
        job.end()


def test_a_job_that_fails_lets_the_next_one_in():
    turns = ModelTurns()
    with pytest.raises(ValueError, match="odd"), turns.turn("m"):
        raise ValueError("odd")
    with turns.turn("m") as turn:
        assert turn.place == 0


def test_a_job_waits_for_its_turn_also_where_nobody_can_cancel_it():
    turns, entered = ModelTurns(), []

    def work():
        with turns.turn("m") as turn:
            entered.append(turn.place)

    with turns.turn("m"):
        thread = threading.Thread(target=work)
        thread.start()
        until(lambda: len(turns.queues["m"]) == 2)
        assert entered == []
    thread.join(10)
    assert entered == [0]
    assert turns.queues == {}  # nothing is kept of models that nobody uses


def test_a_job_that_was_cancelled_while_it_waited_says_so():
    turns = ModelTurns()
    with (
        turns.turn("m"),
        pytest.raises(Cancelled, match=r"^Cancelled before it began\.$"),
        turns.turn("m", lambda: True),
    ):
        pass
    with turns.turn("m", lambda: True) as turn:  # who need not wait has begun
        assert turn.place == 0
    assert turns.queues == {}
