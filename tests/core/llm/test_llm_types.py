import pytest

from core.errors import Cancelled
from core.llm.types import Completion, stop_if


def test_a_cancel_is_an_exception_of_its_own():
    stop_if(None)
    stop_if(lambda: False)
    with pytest.raises(Cancelled):
        stop_if(lambda: True)


def test_a_failed_call_has_a_reason_and_no_answer():
    assert Completion.failed("too long", 7, 0.5) == Completion("", "error", 7, 0, 0.5, None, "too long")
