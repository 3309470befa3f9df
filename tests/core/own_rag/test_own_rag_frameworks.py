"""The examples of docs/how-to/own-rag.md with the real packages, and each framework before a real model."""

import re
from pathlib import Path

import httpx
import pytest

import core
from core.influence import analyse

DOCUMENT = Path(__file__).parents[3] / "docs/how-to/own-rag.md"
TEXTS = ["The canal was opened in 1893.", "The canal is 6.4 km long.", "Coffee grows on the slopes."]
QUESTION = "When was the canal opened?"


def example(heading):
    """Run the one block under a heading of the document; return its names."""
    section = DOCUMENT.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    [code] = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(code, f"{DOCUMENT.name}: {heading}", "exec"), names)
    return names


def ask(llama, prompt):
    """Ask the real llama.cpp server."""
    body = {
        "model": "smollm2-135m",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 16,
        "temperature": 0,
    }
    reply = httpx.post(f"{llama}/v1/chat/completions", json=body, timeout=60).raise_for_status()
    return reply.json()["choices"][0]["message"]["content"]


def check_real(run):
    """Five calls of a real model, each with an answer of its own words."""
    assert run.queries["answer_status"].isin(["answered", "abstained"]).all()
    assert run.queries["closed_book_answer"].str.len().gt(0).all()
    assert run.passages["ablated_answer"].str.len().gt(0).all()
    assert sorted(run.passages["text"]) == sorted(TEXTS)
    assert run.manifest["cost"]["calls"] == 5
    assert len(analyse(run).passages["influence"].dropna()) == 3


def first_passage_decides(run):
    """The stand-in of the document answers with the first passage it is given."""
    texts = run.passages["text"].tolist()
    assert sorted(texts) == sorted(TEXTS)
    assert run.queries["answer"].tolist() == texts[:1]
    assert run.passages["ablated_answer"].tolist() == [texts[1], texts[0], texts[0]]
    influence = analyse(run).passages["influence"].tolist()
    assert influence[0] > 0 and influence[1:] == [0.0, 0.0]


def test_langchain_as_documented():
    pytest.importorskip("langchain_core")
    names = example("LangChain")
    first_passage_decides(names["run"])
    # The passages it got were LangChain's own documents, with the ids of the store.
    assert set(names["run"].passages["passage_id"]) == set(names["store"].store)


def test_langchain_async_before_a_real_model(llama):
    pytest.importorskip("langchain_core")
    from langchain_core.documents import Document
    from langchain_core.messages import AIMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnableLambda

    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return [Document(text, metadata={"title": f"T{i}"}) for i, text in enumerate(TEXTS)]

    seen = []

    async def answer(question, passages):
        seen.append(passages)
        context = "\n".join(f"{p.metadata['title']}: {p.page_content}" for p in passages)
        return await chain.ainvoke({"question": question, "context": context})

    model = RunnableLambda(lambda prompt: AIMessage(ask(llama, prompt.to_string())))
    chain = ChatPromptTemplate.from_template("Answer from:\n{context}\n\n{question}") | model
    run = core.analyze([QUESTION], retrieve=Shelf().ainvoke, answer=answer)
    check_real(run)
    assert run.passages["title"].tolist() == ["T0", "T1", "T2"]
    assert all(isinstance(p, Document) for passages in seen for p in passages)


def test_llama_index_as_documented():
    pytest.importorskip("llama_index.core")
    run = example("LlamaIndex")["run"]
    # The stand-in model repeats its prompt, so every passage shows in the answer, and only the one left out is missing.
    [answer] = run.queries["answer"]
    assert [text in answer for text in TEXTS] == [True] * 3
    for left_out, (text, ablated) in enumerate(
        zip(run.passages["text"], run.passages["ablated_answer"], strict=True)
    ):
        assert text == TEXTS[left_out]
        assert [other in ablated for other in TEXTS] == [i != left_out for i in range(3)]
    assert run.passages["passage_id"].tolist() == ["n0", "n1", "n2"]
    assert run.passages["retrieval_score"].notna().all()
    assert (analyse(run).passages["influence"] > 0).all()


def test_llama_index_before_a_real_model(llama):
    pytest.importorskip("llama_index.core")
    from llama_index.core import get_response_synthesizer
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode

    class Server(CustomLLM):
        @property
        def metadata(self):
            return LLMMetadata(context_window=4096, num_output=16)

        def complete(self, prompt, formatted=False, **kwargs):
            return CompletionResponse(text=ask(llama, prompt))

        def stream_complete(self, prompt, formatted=False, **kwargs):
            yield self.complete(prompt)

    class Shelf(BaseRetriever):
        def _retrieve(self, query_bundle):
            return [NodeWithScore(node=TextNode(text=text), score=0.5) for text in TEXTS]

    server = Server()
    synthesizer = get_response_synthesizer(llm=server)

    def answer(question, passages):
        # The synthesizer does not ask its model where there is no node.
        return synthesizer.synthesize(question, passages) if passages else server.complete(question)

    run = core.analyze([QUESTION], retrieve=Shelf().retrieve, answer=answer)
    check_real(run)
    assert run.passages["retrieval_score"].tolist() == [0.5] * 3


def test_haystack_as_documented():
    pytest.importorskip("haystack")
    run = example("Haystack")["run"]
    first_passage_decides(run)
    assert run.passages["text"][0] == TEXTS[0]
    assert run.passages["retrieval_score"].is_monotonic_decreasing


def test_haystack_before_a_real_model(llama):
    pytest.importorskip("haystack")
    from haystack import Document, Pipeline
    from haystack.components.builders import ChatPromptBuilder
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
    from haystack.dataclasses import ChatMessage
    from haystack.document_stores.in_memory import InMemoryDocumentStore
    from haystack.utils import Secret

    store = InMemoryDocumentStore()
    store.write_documents([Document(content=text) for text in TEXTS])
    retriever = InMemoryBM25Retriever(store, top_k=3)
    template = [ChatMessage.from_user("{% for d in documents %}{{ d.content }}\n{% endfor %}{{ question }}")]
    pipeline = Pipeline()
    pipeline.add_component("prompt", ChatPromptBuilder(template, required_variables="*"))
    pipeline.add_component(
        "llm",
        OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            model="smollm2-135m",
            api_base_url=f"{llama}/v1",
            generation_kwargs={"max_tokens": 16, "temperature": 0},
        ),
    )
    pipeline.connect("prompt.prompt", "llm.messages")

    def answer(question, passages):
        assert all(isinstance(passage, Document) for passage in passages)
        return pipeline.run({"prompt": {"question": question, "documents": passages}})["llm"]["replies"][0]

    run = core.analyze(
        [QUESTION], retrieve=lambda question: retriever.run(query=question)["documents"], answer=answer
    )
    check_real(run)
