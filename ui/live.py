"""The live run: its options, the plan, the run."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.llm import BACKENDS, CompletionCache, default_cache_path
from core.llm.prompts import STYLES
from core.pipeline import Progress, RunOptions, calibrate, execute, make_plan
from core.pipeline.claims import find_claims
from core.pipeline.claims_options import ClaimsOptions
from core.pipeline.claims_run import calls_beyond
from core.retrieval import EMBEDDING_RETRIEVERS, RETRIEVERS
from core.sources.dataset import Dataset
from ui import library, servers
from ui.jobs import Job, registry
from ui.servers import Choice
from ui.state import session

_RETRIEVERS = {
    "bm25": "BM25",
    "bm25s": "BM25, for large collections",
    "dense": "Embeddings",
    "hybrid": "BM25 and embeddings",
}
_CLAIMS = {
    "offline": "Check them offline",
    "judge": "The same model takes answers apart and judges",
    "none": "Not now",
}
_STYLES = {"short": "Short answers", "full": "Whole sentences, with sources"}


def settings(dataset: Dataset, choice: Choice) -> None:
    """Draw the options of the run and the button that starts the planning job."""
    with st.grid(4, min_column_width=170):
        k = _number(
            "Passages k", "live_k", 1, 100, RunOptions().k, "Passages in the prompt; one more call for each."
        )
        repeats = _number(
            "Noise repeats",
            "live_repeats",
            0,
            100,
            0,
            "Ask the unablated question again, to see how steady the model is.",
        )
        tokens = _tokens(choice.kind)
        style = st.selectbox(
            "Prompt",
            list(STYLES),
            key="live_style",
            format_func=lambda name: _STYLES.get(name, name.capitalize()),
            persist_state="session",
            help="What the model is told; the plan shows the whole prompt.",
        )
    found = _retrieval(dataset)
    closed = st.checkbox(
        "Also ask without any passage (closed book)", value=True, key="live_closed", persist_state="session"
    )
    if st.button("Make a plan", icon=":material/calculate:", type="primary", key="live_plan"):
        options = RunOptions(
            k=k, repeats=repeats, closed_book=closed, max_tokens=tokens, style=style, **found
        )
        _start_plan(dataset, options, choice)
        st.rerun()


def _number(label: str, key: str, low: int, high: int, default: int, about: str | None = None) -> int:
    """Draw a whole number that keeps its value while the visitor looks at other pages."""
    return int(st.number_input(label, low, high, default, key=key, help=about, persist_state="session"))


def _tokens(kind: str) -> int:
    """Draw the answer length: the back end's default until a visitor changes it."""
    kept, key = session().live, "live_tokens"
    default = BACKENDS[kind].max_tokens
    if st.session_state.get(key, kept.get(key)) == kept.get(key):
        st.session_state[key] = kept[key] = default
    return int(st.number_input("Answer tokens at most", 1, 4096, key=key, persist_state="session"))


def _retrieval(dataset: Dataset) -> dict[str, Any]:
    """Draw the retriever's settings where there are documents to retrieve from."""
    if all(question.passages is not None for question in dataset.questions):
        return {}
    with st.grid(3, min_column_width=170):
        retriever = st.selectbox(
            "Retriever",
            RETRIEVERS,
            key="live_retriever",
            format_func=lambda name: _RETRIEVERS.get(name, name),
            persist_state="session",
        )
        words = _number("Words per passage", "live_words", 10, 5000, RunOptions().passage_words)
        if retriever not in EMBEDDING_RETRIEVERS:
            return {"retriever": retriever, "passage_words": words}
        name = st.text_input(
            "Embedding model",
            key="live_embedder",
            placeholder="Default: all-MiniLM-L6-v2, packaged",
            persist_state="session",
            help="A name or folder that sentence-transformers knows; it runs on this machine.",
        )
    return {"retriever": retriever, "passage_words": words, "embedding_model": (name or "").strip() or None}


def _start_plan(dataset: Dataset, options: RunOptions, choice: Choice) -> None:
    jobs, open_model = registry(), servers.opener(choice)
    _stop_old()

    def work(job: Job) -> Any:
        job.meter.what = "loading the model, counting calls, measuring its speed"
        llm = open_model()
        with CompletionCache(default_cache_path()) as cache:
            plan = make_plan(dataset, options, llm, cache)
            if not plan.n_to_ask:
                return plan
            # The calls that measured the speed are real ones and need not be made again.
            calibration = calibrate(llm, plan, cache)
            return make_plan(dataset, options, llm, cache).calibrated(calibration)

    _adopt(jobs.start(Job("plan", f"Plan for {dataset.name}", settings=choice), work))


def claims_choice(plan: Any) -> ClaimsOptions | None:
    """Draw who is to check the claims of the answers after the run; None = nobody."""
    chosen = st.selectbox(
        "Claims and evidence",
        list(_CLAIMS),
        key="live_claims",
        format_func=lambda name: _CLAIMS[name],
        persist_state="session",
        help="Afterwards every answer is taken apart into claims, and each is checked against the passages. "
        "It can also be done later, on the page Claims & evidence.",
    )
    if chosen == "none":
        return None
    options = ClaimsOptions(verifier=chosen)
    calls = calls_beyond(plan, options, None)
    st.caption(f"About {calls:,} more calls, at three claims an answer." if calls else "No further calls.")
    return options


def start_run(plan: Any, choice: Choice, claims: ClaimsOptions | None) -> None:
    """Start, or go on with, the run of a plan; finished calls come from the cache."""
    jobs, open_model = registry(), servers.opener(choice)

    def work(job: Job) -> Any:
        def arrived(partial: Any) -> None:
            job.partial, job.n_results = partial, job.n_results + 1

        job.meter.total = plan.n_calls
        model = open_model()
        with CompletionCache(default_cache_path()) as cache:
            run = execute(
                plan,
                model,
                cache,
                progress=job.meter.update,
                cancelled=job.cancelled,
                on_question=arrived,
            )
            library.save(run)
            if claims is not None and run.manifest["complete"]:
                job.meter = Progress(unit="answers")
                run = find_claims(
                    run, claims, llm=model, cache=cache, progress=job.meter.update, cancelled=job.cancelled
                )
                library.save(run)
        return run

    _adopt(jobs.start(Job("run", f"Run of {plan.dataset.name}", settings=(choice, plan, claims)), work))


def _stop_old() -> None:
    """Stop an unfinished plan, which a new one replaces; a run goes on until it is cancelled."""
    old = registry().get(session().job_id)
    if old is not None and old.kind == "plan":
        old.cancel()


def _adopt(job: Job) -> None:
    session().job_id = job.id
    st.query_params["job"] = job.id
