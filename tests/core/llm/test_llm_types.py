import pytest

from core.errors import Cancelled
from core.llm.backends import BACKENDS
from core.llm.types import Capabilities, Completion, PullProgress, Request, stop_if


def test_a_cancel_is_an_exception_of_its_own():
    stop_if(None)
    stop_if(lambda: False)
    with pytest.raises(Cancelled):
        stop_if(lambda: True)


def test_a_failed_call_has_a_reason_and_no_answer():
    assert Completion.failed("too long", 7, 0.5) == Completion("", "error", 7, 0, 0.5, None, "too long")
    assert Completion.failed("too long") == Completion("", "error", 0, 0, 0.0, None, "too long")


def test_what_is_not_said_of_a_call_is_the_likeliest_short_answer_and_of_a_back_end_that_it_cannot():
    assert Request(()) == Request((), 0.0, 1.0, 0, 24, (), None, False)
    assert Capabilities() == Capabilities(False, False, False, False, False, 1, None, 1, False)
    assert PullProgress("verifying") == PullProgress("verifying", None, None)


def test_models_that_may_reason_first_have_room_for_it():
    most = {kind: backend.max_tokens for kind, backend in BACKENDS.items()}
    assert most == {"embedded": 24, "openai": 300, "ollama": 300}
