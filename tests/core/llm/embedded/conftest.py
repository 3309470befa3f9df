import pytest

from core.llm import open_llm
from tests.core.llm.embedded.tiny_model import one_thread, tiny_model


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    """Return a real model of a few thousand random weights; its threads are one while it is used."""
    with one_thread():
        yield open_llm("embedded", tiny_model(tmp_path_factory.mktemp("tiny")), dtype="float32")
