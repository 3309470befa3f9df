"""Streaming answers, LangChain's objects as they are, and answers inside mappings."""

import pytest
from haystack.dataclasses import ChatMessage
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from llama_index.core import MockEmbedding, VectorStoreIndex, get_response_synthesizer
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

import core
from core.errors import BackendError

TEXTS = ["The canal was opened in 1893.", "The canal is 6.4 km long."]
QUESTION = "When was the canal opened?"


class Shelf(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=text, id=f"d{i}") for i, text in enumerate(TEXTS)]


def first(passages):
    return passages[0] if passages else "nothing"


def answers(answer, retrieve=lambda question: TEXTS, **options):
    run = core.analyze([QUESTION], retrieve=retrieve, answer=answer, progress=False, **options)
    assert run.queries["status_reason"].isna().all()
    (whole,) = run.queries["answer"]
    return whole, run.passages["ablated_answer"].to_list()


WANTED = (TEXTS[0], [TEXTS[1], TEXTS[0]])


def streamed(question, passages):
    text = first(passages)
    yield text[:5]
    yield text[5:]


async def streamed_async(question, passages):
    text = first(passages)
    yield text[:5]
    yield text[5:]


async def gives_a_stream(question, passages):
    return streamed_async(question, passages)


def in_pieces(question, passages):
    text = first(passages)
    return iter([{"context": passages}, {"answer": text[:5]}, AIMessageChunk(text[5:])])


@pytest.mark.parametrize("answer", [streamed, streamed_async, gives_a_stream, in_pieces])
def test_pieces_of_an_answer_are_joined(answer):
    assert answers(answer) == WANTED


def test_an_answer_that_breaks_off_is_an_error_and_none_without_text():
    def breaks(question, passages):
        yield "The"
        raise ConnectionError("gone")

    for answer, message in (
        (breaks, "answer raised ConnectionError: gone"),
        (lambda q, p: iter([{}]), "must return a text"),
    ):
        with pytest.raises(BackendError, match=message):
            core.analyze([QUESTION], retrieve=lambda question: TEXTS, answer=answer)


def test_a_streaming_synthesizer_of_llama_index():
    index = VectorStoreIndex(
        [TextNode(text=text, id_=f"n{i}") for i, text in enumerate(TEXTS)],
        embed_model=MockEmbedding(embed_dim=4),
    )
    synthesizer = get_response_synthesizer(llm=MockLLM(), streaming=True)
    whole, _ = answers(synthesizer.synthesize, index.as_retriever(similarity_top_k=2).retrieve)
    assert all(text in whole for text in TEXTS)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: {"result": text, "source_documents": []},
        lambda text: {"replies": [text, "another reply"], "meta": [{}]},
        lambda text: {"replies": [ChatMessage.from_assistant(text)]},
    ],
    ids=["result", "replies", "messages"],
)
def test_answers_in_a_mapping(wrap):
    assert answers(lambda question, passages: wrap(first(passages))) == WANTED


def test_a_retriever_object_is_a_retrieve():
    run = core.analyze(
        [QUESTION], retrieve=Shelf(), answer=lambda q, passages: first([p.page_content for p in passages])
    )
    assert run.passages["passage_id"].to_list() == ["d0", "d1"]
    assert run.queries["answer"].to_list() == [TEXTS[0]]


def taken(prompt):
    """Stand in for a model that copies the first passage of its prompt."""
    lines = prompt.to_string().split("CONTEXT\n")[1].split("\n")
    return lines[0] or "nothing"


@pytest.mark.parametrize("names", [("question", "context"), ("input", "documents"), ("query", "passages")])
def test_a_chain_that_begins_with_a_prompt_gets_texts(names):
    question, passages = names
    text = f"{{{question}}}\nCONTEXT\n{{{passages}}}\n"
    for prompt in (PromptTemplate.from_template(text), ChatPromptTemplate.from_template(text)):
        assert answers(prompt | RunnableLambda(taken), Shelf()) == WANTED


def test_any_other_runnable_gets_the_objects():
    seen = []

    def chain(given):
        seen.append(given)
        return {"answer": first([document.page_content for document in given["context"]])}

    assert answers(RunnableLambda(chain), Shelf()) == WANTED
    assert {type(document) for document in seen[0]["context"]} == {Document} and seen[0][
        "question"
    ] == QUESTION


def test_a_chain_that_formats_its_documents():
    joined = RunnablePassthrough.assign(
        context=lambda given: "\n".join(d.page_content for d in given["context"])
    )
    prompt = ChatPromptTemplate.from_template("{question}\nCONTEXT\n{context}\n")
    model = FakeListChatModel(responses=["It opened in 1893."])
    whole, _ = answers(joined | prompt | model | StrOutputParser(), Shelf())
    assert whole == "It opened in 1893."


def test_the_run_is_named_after_the_chain():
    chain = RunnableLambda(lambda given: "yes", name="canal chain")
    run = core.analyze([QUESTION], retrieve=Shelf(), answer=chain)
    assert run.name == "Questions, canal chain"
