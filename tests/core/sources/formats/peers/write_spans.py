"""A framework answers two questions under its instrumentor: ``python write_spans.py FRAMEWORK FOLDER``.

The spans are written as the console exporter prints them, and as the OTLP exporter sends them (as JSON, ids in
hexadecimal digits, as the collector's file exporter writes it).
"""

import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

from facts import PASSAGES, QUESTIONS, reply_to
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SHELF = dict(zip(QUESTIONS, PASSAGES, strict=True))


def langchain(provider: TracerProvider) -> Callable[[str], object]:
    """A retriever, a prompt and a chat model, piped."""
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough
    from openinference.instrumentation.langchain import LangChainInstrumentor

    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list:
            return [
                Document(text, id=f"d{i}", metadata={"title": "Canal"}) for i, text in enumerate(SHELF[query])
            ]

    class Model(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "quoting"

        def _generate(self, messages: list, *_: object, **__: object) -> ChatResult:
            message = AIMessage(reply_to(messages[-1].content))
            return ChatResult(generations=[ChatGeneration(message=message)])

    LangChainInstrumentor().instrument(tracer_provider=provider)
    prompt = ChatPromptTemplate.from_template("Answer from this:\n{passages}\n\n{question}")
    chain = {"passages": Shelf(), "question": RunnablePassthrough()} | prompt | Model() | StrOutputParser()
    return chain.invoke


def llamaindex(provider: TracerProvider) -> Callable[[str], object]:
    """A query engine over a retriever."""
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.query_engine import RetrieverQueryEngine
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, TextNode
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    class Shelf(BaseRetriever):
        def _retrieve(self, query_bundle: object) -> list:
            texts = SHELF[query_bundle.query_str]
            return [
                NodeWithScore(node=TextNode(text=t, id_=f"d{i}"), score=0.5 - i / 4)
                for i, t in enumerate(texts)
            ]

    class Model(CustomLLM):
        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="quoting")

        def complete(self, prompt: str, formatted: bool = False, **_: object) -> CompletionResponse:
            return CompletionResponse(text=reply_to(prompt))

        def stream_complete(self, prompt: str, formatted: bool = False, **_: object) -> object:
            raise NotImplementedError

    LlamaIndexInstrumentor().instrument(tracer_provider=provider)
    return RetrieverQueryEngine.from_args(Shelf(), llm=Model()).query


def haystack(provider: TracerProvider) -> Callable[[str], object]:
    """A pipeline of a retriever, a prompt builder and a generator that is a component of one's own."""
    from haystack import Pipeline
    from haystack.components.builders import PromptBuilder
    from haystack_parts import Quoting, ShelfRetriever
    from openinference.instrumentation.haystack import HaystackInstrumentor

    HaystackInstrumentor().instrument(tracer_provider=provider)
    template = "{% for document in documents %}{{ document.content }}\n{% endfor %}\n{{ question }}"
    pipeline = Pipeline()
    pipeline.add_component("retriever", ShelfRetriever())
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.add_component("model", Quoting())
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.prompt")
    return lambda question: pipeline.run({"retriever": {"query": question}, "prompt": {"question": question}})


def in_hexadecimal(batch: dict) -> dict:
    """Return an OTLP batch with its ids as OTLP's JSON has them; protobuf's JSON has them in base64."""
    for span in (s for r in batch["resourceSpans"] for scope in r["scopeSpans"] for s in scope["spans"]):
        for name in span.keys() & {"traceId", "spanId", "parentSpanId"}:
            span[name] = base64.b64decode(span[name]).hex()
    return batch


framework, folder = sys.argv[1], Path(sys.argv[2])
memory = InMemorySpanExporter()
with open(folder / f"{framework}-console.json", "w", encoding="utf-8") as console:
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=console)))
    tracers.add_span_processor(SimpleSpanProcessor(memory))
    ask = {"langchain": langchain, "llamaindex": llamaindex, "haystack": haystack}[framework](tracers)
    for asked in QUESTIONS:
        ask(asked)
    tracers.shutdown()
batch = in_hexadecimal(MessageToDict(encode_spans(memory.get_finished_spans())))
(folder / f"{framework}-otlp.json").write_text(json.dumps(batch), encoding="utf-8")
