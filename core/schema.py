"""The tables of a run, defined once: validation, upload mapping, templates and glossary are made from here.

Tables hold **raw observations** only; what can be computed from them is a number of a diagnostic (`core.socket`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from core.errors import InputError
from core.rows import is_kept_for, once_for
from core.text.display import shorten

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    ``type`` is one of ``str, float, int, bool, list`` (a list of strings). ``range`` is
    inclusive, None on a side without a bound. ``aliases`` are the names under which
    other tools write the same thing.
    """

    name: str
    type: str
    meaning: str
    required: bool = False
    unit: str = ""
    range: tuple[float | None, float | None] | None = None
    direction: str = ""
    values: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A tidy table: a name, the columns that identify a row, and all columns."""

    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    def column(self, name: str) -> Column:
        """Return the column called ``name``; KeyError when there is none."""
        return {column.name: column for column in self.columns}[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)


_QUERY = Column("query_id", "str", "Identifies the question within the run.", required=True)
_PASSAGE = Column("passage_id", "str", "Identifies the passage within its question.", required=True,
                  aliases=("doc_id", "document_id", "chunk_id"))  # fmt: skip

ANSWER_STATUS = ("answered", "abstained", "empty", "error")

QUERIES = Table(
    "queries", "One row per question.", ("query_id",),
    (
        _QUERY,
        Column("question", "str", "The question as asked.", required=True, aliases=("query", "user_input", "prompt")),
        Column("answer", "str", "The baseline answer: temperature 0, all passages in retrieval order.",
               aliases=("baseline_answer", "response", "output")),
        Column("answer_status", "str", "Status of the baseline answer: answered, abstained (a refusal or "
               "\"I don't know\"), empty, or error (the model call failed).", values=ANSWER_STATUS),
        Column("status_reason", "str", "Why the answer is empty or in error, as the back end reports it."),
        Column("closed_book_answer", "str", "The answer to the same question with no passages at all."),
        Column("reference_answers", "list", "Correct answers, if known.",
               aliases=("answers", "reference", "expected_answer", "correct_answer", "expected_output")),
        Column("correct", "bool", "Whether the answer is correct, as a person or another program judged it; it goes before "
               "a comparison with reference_answers.", aliases=("is_correct",)),
        Column("correct_by", "str", "Who or what judged it: a name, or the column of the file."),
        Column("n_gold", "int", "Number of gold passages for this question in the collection.", range=(0, None)),
        Column("kind", "str", "Kind of the question, a label of its data set."),
        Column("language", "str", "Language code of the question, from its data set."),
        Column("calibrates", "bool", "Whether conformal thresholds are calibrated on this question; false: it tests them."),
        Column("latency", "float", "Duration of the baseline call.", unit="s", range=(0, None), direction="lower is better"),
        Column("prompt_tokens", "int", "Tokens in the baseline prompt.", unit="tokens", range=(0, None)),
        Column("completion_tokens", "int", "Tokens generated for the baseline.", unit="tokens", range=(0, None)),
        Column("reported_rho", "float", "Rank agreement in an imported file; compared, not used in calculations.",
               range=(-1, 1), aliases=("spearman_rho",)),
        Column("reported_p_value", "float", "p-value of the reported rank agreement.", range=(0, 1),
               aliases=("spearman_pvalue", "pvalue")),
        Column("reported_dominance", "float", "Dominance ratio in an imported file.", range=(0, 1),
               aliases=("dominance_ratio",)),
        Column("reported_entropy", "float", "Influence entropy in an imported file.", unit="nats",
               range=(0, None), aliases=("influence_entropy",)),
        Column("reported_divergent", "bool", "Divergence flag in an imported file.", aliases=("is_divergent",)),
        Column("planted_case", "str", "Simulated and composed runs only: the case that was planted in this question."),
        Column("planted_rho", "float", "Simulation only: rank agreement of the planted influence.", range=(-1, 1)),
        Column("planted_correct", "bool", "Simulated and composed runs only: whether the answer was made to be correct."),
    ),
)  # fmt: skip

PASSAGES = Table(
    "passages", "One row per retrieved passage of a question.", ("query_id", "passage_id"),
    (
        _QUERY,
        _PASSAGE,
        Column("title", "str", "Title of the document the passage comes from."),
        Column("text", "str", "The passage itself.", aliases=("passage", "context", "content")),
        Column("retrieval_rank", "float", "Rank by the retriever; 1 is best.", required=True, range=(1, None),
               direction="lower is better", aliases=("rank",)),
        Column("retrieval_score", "float", "The retriever's own score; BM25 scores have no upper bound.",
               direction="higher is better", aliases=("score", "bm25_score")),
        Column("slot", "int", "Place in the prompt, from 1.", range=(1, None)),
        Column("ablated_answer", "str", "The answer when this one passage is left out."),
        Column("ablated_status", "str", "Status of the ablated answer.", values=ANSWER_STATUS),
        Column("influence_score", "float", "1 - ROUGE-L F1 of baseline and ablated answer, where only the number is "
               "known (imported files); computed from the answers where they are known.", range=(0, 1),
               direction="higher = leaving the passage out changes the answer more", aliases=("influence",)),
        Column("logprob_drop", "float", "log p(baseline | all) - log p(baseline | without this passage).", unit="nats",
               direction="higher = the passage helped more"),
        Column("reference_logprob_drop", "float", "log p(first reference answer | all) - log p(it | without this passage).",
               unit="nats", direction="higher = the passage makes the correct answer likelier"),
        Column("approximate_drop", "bool", "Whether these two are only estimated, by the quick screen."),
        Column("screened_drop", "float", "logprob_drop as the quick screen estimates it, where it was used.", unit="nats",
               direction="higher = the passage helped more"),
        Column("is_gold", "bool", "Whether the passage is known to hold the answer."),
        Column("reported_influence_rank", "float", "Influence rank in an imported file.", range=(1, None),
               aliases=("influence_rank",)),
        Column("reported_rouge_l", "float", "ROUGE-L in an imported file.", range=(0, 1), aliases=("rouge_l",)),
        Column("planted_influence", "float", "Simulation only: the influence that was planted.", range=(0, 1)),
    ),
)  # fmt: skip

REPEATS = Table(
    "repeats", "Unablated calls repeated: the noise floor.", ("query_id", "repeat"),
    (
        _QUERY,
        Column("repeat", "int", "Number of the repeat, from 1.", required=True, range=(1, None)),
        Column("answer", "str", "The answer of this repeat."),
        Column("answer_status", "str", "Status of this answer.", values=ANSWER_STATUS),
    ),
)  # fmt: skip

ABLATIONS = Table(
    "ablations", "The answer with some of the passages only, or with all of them in another order.", ("query_id", "ablation_id"),
    (
        _QUERY,
        Column("ablation_id", "str", "Identifies the ablation within its question.", required=True),
        Column("kept", "str", "One character per passage in slot order: 1 kept, 0 left out.", required=True),
        Column("order", "list", "Passage ids in prompt order, where the order was changed."),
        Column("near_duplicates", "bool", "Of passages that were left out because they belong together: whether they are "
               "near-duplicates; false: they support the same claims."),
        Column("answer", "str", "The answer under this ablation, where it was generated."),
        Column("answer_status", "str", "Status of this answer, or of reading the baseline answer.", values=ANSWER_STATUS),
        Column("again", "str", "The answer when asked once more under another seed."),
        Column("logprob", "float", "Log-probability of the baseline answer under this ablation.", unit="nats", range=(None, 0)),
        Column("n_tokens", "int", "Tokens of the baseline answer.", unit="tokens", range=(1, None)),
    ),
)  # fmt: skip

ABLATED_CLAIMS = Table(
    "ablated_claims", "Each claim of the baseline answer with some of the passages only.",
    ("query_id", "ablation_id", "claim_id"),
    (
        _QUERY,
        Column("ablation_id", "str", "The ablation.", required=True),
        Column("claim_id", "str", "The claim.", required=True),
        Column("logprob", "float", "Log-probability of the text of the claim under this ablation.", unit="nats", range=(None, 0)),
    ),
)  # fmt: skip

SAMPLES = Table(
    "samples", "Answers sampled at random.", ("query_id", "sample_id"),
    (
        _QUERY,
        Column("sample_id", "str", "Identifies the sample within its question.", required=True),
        Column("answer", "str", "The sampled answer.", aliases=("sample", "sampled_answer")),
        Column("temperature", "float", "Sampling temperature.", range=(0, None)),
        Column("top_p", "float", "Nucleus sampling share.", range=(0, 1)),
        Column("seed", "int", "Seed of the call."),
        Column("logprob_sum", "float", "Sum of the tokens' log-probabilities.", unit="nats", range=(None, 0)),
        Column("n_tokens", "int", "Tokens generated.", unit="tokens", range=(0, None)),
        Column("planted_meaning", "int", "Simulated and composed runs only: number of the meaning this answer was made to "
               "have; 1 is that of the baseline answer.", range=(1, None)),
    ),
)  # fmt: skip

CONTEXTS = ("unchanged", "without_support", "unrelated_added")
CONTEXT_SAMPLES = Table(
    "context_samples", "Answers to the same question with other passages in the prompt: the context test.",
    ("query_id", "condition", "sample_id"),
    (
        _QUERY,
        Column("condition", "str", "What was done to the passages: nothing (temperature 0 only; the others are in samples), "
               "the supporting ones left out, or passages of other questions added.", required=True, values=CONTEXTS),
        Column("sample_id", "str", "The sample that was drawn alike, as in the table samples; baseline: temperature 0.",
               required=True),
        Column("order", "list", "Passage ids in prompt order."),
        Column("order_of", "list", "The question that each of them was retrieved for."),
        *SAMPLES.columns[2:-1],
    ),
)  # fmt: skip

SAMPLE_CHECKS = Table(
    "sample_checks", "How the answer and its samples are related, as a model for inference or a judge has it.",
    ("query_id", "premise", "hypothesis"),
    (
        _QUERY,
        Column("premise", "str", "baseline or a sample, the first of those with the same text; passages: the model itself.",
               required=True),
        Column("hypothesis", "str", "The other text: baseline, a sample, or a sentence of the baseline (sentence 1, …).",
               required=True),
        Column("entailment", "float", "Probability that the premise entails the hypothesis; of passages and baseline: that "
               "the model calls its answer true.", range=(0, 1)),
        Column("contradiction", "float", "Probability that the premise contradicts the hypothesis.", range=(0, 1)),
        Column("judge", "str", "Who says so."),
    ),
)  # fmt: skip

CLAIMS = Table(
    "claims", "Atomic claims of the baseline answer and, where known, of the reference answer.", ("query_id", "claim_id"),
    (
        _QUERY,
        Column("claim_id", "str", "Identifies the claim within its question.", required=True),
        Column("text", "str", "The claim, self-contained.", required=True, aliases=("claim", "claim_text", "statement")),
        Column("side", "str", "Whose claim it is: the answer's (also when empty) or the reference answer's.",
               values=("answer", "reference")),
        Column("counterpart", "str", "Label of the claim against the other text (the reference for a claim of the answer, "
               "and the reverse), in an imported file.", values=("Entailment", "Neutral", "Contradiction")),
        Column("start", "int", "First character in the answer.", range=(0, None)),
        Column("end", "int", "One past the last character in the answer.", range=(0, None)),
        Column("spans", "list", "Every span of the answer that states it, as start:end; the first is start and end."),
        Column("added", "list", "Content words of the claim that are not in that answer span."),
        Column("dropped", "list", "Content words of its answer span that are in no claim."),
        Column("relevance", "str", "Whether the claim is about the question.", values=("RELEVANT", "IRRELEVANT")),
        Column("verdict", "str", "Verdict against the retrieved passages.", values=("SUPPORTED", "NOT_SUPPORTED")),
        Column("scored", "bool", "False where the verifier failed; not the same as not supported."),
    ),
)  # fmt: skip

PLANTED = (
    "none", "number", "date", "name", "negated", "overclaimed", "wrong_passage", "in_no_passage", "two_passages",
)  # fmt: skip
PLANTED_CLAIMS = Table(
    "planted_claims",
    "Composed runs only: the claims that the baseline answer was composed of, and what was planted in each.",
    ("query_id", "claim_id"),
    (
        _QUERY,
        Column("claim_id", "str", "Identifies the claim within its question, as in the table claims.", required=True),
        Column("text", "str", "The claim.", required=True),
        Column("start", "int", "First character in the answer.", required=True, range=(0, None)),
        Column("end", "int", "One past the last character in the answer.", required=True, range=(0, None)),
        Column("planted", "str", "What was planted in the claim.", required=True, values=PLANTED),
        Column("passages", "list", "Passages that support the claim; two_passages: only together."),
    ),
)  # fmt: skip

SUPPORT = Table(
    "support", "How far each passage supports each claim.", ("query_id", "claim_id", "passage_id"),
    (
        _QUERY,
        Column("claim_id", "str", "The claim.", required=True),
        _PASSAGE,
        Column("probability", "float", "Probability that the passage supports the claim.", range=(0, 1),
               direction="higher = better supported", aliases=("support", "supported", "entailment")),
        Column("label", "str", "The verifier's own label, if it gives one."),
        Column("judge", "str", "The verifier."),
        Column("agreement", "float", "Share of repeated verdicts that equal the majority.", range=(0.5, 1),
               direction="higher = the verifier is more consistent"),
        Column("start", "int", "First character of the sentence of the passage that is most like the claim.", range=(0, None)),
        Column("end", "int", "One past the last character of that sentence.", range=(0, None)),
    ),
)  # fmt: skip

JOINT_SUPPORT = Table(
    "joint_support", "Pairs of passages that support a claim which neither supports alone.",
    ("query_id", "claim_id", "passage_id", "second_passage_id"),
    (
        _QUERY,
        Column("claim_id", "str", "The claim.", required=True),
        _PASSAGE,
        Column("second_passage_id", "str", "The other passage of the pair.", required=True),
        Column("probability", "float", "Probability that the two together support the claim.", range=(0, 1),
               direction="higher = better supported"),
        Column("judge", "str", "The verifier."),
    ),
)  # fmt: skip

SIGNALS = Table(
    "signals", "Confidence signals of the baseline answer, one column each.", ("query_id",),
    (
        _QUERY,
        Column("similarity", "float", "Similarity of question and passages.", range=(0, 1), direction="higher = more confident"),
        Column("lexical", "float", "Lexical retrieval score.", range=(0, 100), direction="higher = more confident"),
        Column("llm_score", "float", "Stated confidence of the model.", range=(0, 1), direction="higher = more confident"),
    ),
)  # fmt: skip

CONFIDENCES = Table(
    "confidences", "Confidences of the baseline answer in an imported file, each under the name that the file gives it.",
    ("query_id", "name"),
    (
        _QUERY,
        Column("name", "str", "Name in the file, in small letters; what is no letter or digit is _.", required=True),
        Column("value", "float", "The confidence.", range=(0, 1), direction="higher = more confident"),
    ),
)  # fmt: skip

VERDICTS = Table(
    "verdicts", "Verdict of each validator on the baseline answer.", ("query_id", "validator"),
    (
        _QUERY,
        Column("validator", "str", "Name of the validator.", required=True),
        Column("passed", "bool", "Whether the answer passed; missing where the validator did not apply."),
        Column("severity", "str", "How serious a failure is; a critical one must not be shown."),
        Column("reason", "str", "Reason code."),
        Column("value", "float", "The number behind the reason: an overlap, or a count."),
        Column("spans", "list", "Spans of the answer that the verdict is about, as start:end."),
        Column("detail", "str", "What the validator found."),
        Column("fallback_used", "bool", "Whether a safe answer replaced the original."),
    ),
)  # fmt: skip

GOLD = Table(
    "gold", "Gold passages of each question in the collection, retrieved or not.", ("query_id", "passage_id"),
    (
        _QUERY,
        _PASSAGE,
        Column("title", "str", "Title of the document it comes from."),
        Column("text", "str", "The passage, where it was not retrieved; else it is in passages."),
        Column("evidence", "list", "The fragments that make it gold, as the data set has them."),
    ),
)  # fmt: skip

ARMS = Table(
    "arms", "The question asked again the way a fix would: other passages, another order, another prompt.",
    ("query_id", "arm", "repeat"),
    (
        _QUERY,
        Column("arm", "str", "Name of what was tried.", required=True),
        Column("repeat", "int", "Number of the call, from 1; of alone, the slot of the passage.", required=True, range=(1, None)),
        Column("prompt", "str", "Whether the prompt is another one; none: there was nothing to try.",
               values=("changed", "unchanged", "none")),
        Column("passages", "list", "Passage ids in prompt order."),
        Column("gold_by", "str", "How the gold passages were found.", values=("labelled", "sufficient", "reference")),
        Column("answer", "str", "The answer; that of the run is not repeated where the prompt is unchanged."),
        Column("answer_status", "str", "Status of this answer.", values=ANSWER_STATUS),
        Column("status_reason", "str", "Why the call failed."),
        Column("support", "float", "Best support of the weakest claim of the answer, where claims decide.", range=(0, 1),
               direction="higher = better supported"),
        Column("judged", "bool", "Whether its claims were looked for."),
        Column("prompt_tokens", "int", "Tokens in the prompt.", unit="tokens", range=(0, None)),
        Column("completion_tokens", "int", "Tokens generated.", unit="tokens", range=(0, None)),
    ),
)  # fmt: skip

REPORTED = Table(
    "reported", "Further values of a question in an imported file; shown and exported, not used in calculations.",
    ("query_id", "name", "by"),
    (
        _QUERY,
        Column("name", "str", "Name of the metric or field, as the file has it.", required=True),
        Column("by", "str", "Who gave the value: a judge, an annotator; \"\" where the file does not say.",
               required=True),
        Column("value", "float", "The value, where it is a number."),
        Column("text", "str", "The value where it is not a number: a text, or JSON."),
    ),
)  # fmt: skip

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        QUERIES, PASSAGES, REPEATS, ABLATIONS, ABLATED_CLAIMS, SAMPLES, CONTEXT_SAMPLES, SAMPLE_CHECKS, CLAIMS, PLANTED_CLAIMS, SUPPORT,
        JOINT_SUPPORT, SIGNALS, CONFIDENCES, VERDICTS, REPORTED, GOLD, ARMS,
    )
}  # fmt: skip

_DTYPES = {"str": "str", "float": "float64", "int": "Int64", "bool": "boolean", "list": "object"}


def empty(table: Table) -> pd.DataFrame:
    """Return a frame of no rows with the table's columns and types."""
    # Whoever writes to it writes to a frame of their own.
    return _conforming(table, _empty(table).copy(deep=False))


@cache
def _empty(table: Table) -> pd.DataFrame:
    return pd.DataFrame({c.name: pd.Series(dtype=_DTYPES[c.type]) for c in table.columns})


def _conforming(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame, which is not looked through again when the next run is made of it."""
    once_for(frame, table.name, lambda _: None)
    return frame


def conform(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with exactly the table's columns, types and order; optional ones that are absent are empty.

    InputError where a required column is absent, a column is unknown, a key repeats, or a value cannot be read
    as its type; the message names table, column, row and value.
    """
    if is_kept_for(frame, table.name) and tuple(frame.columns) == table.names:
        return frame
    unknown = [name for name in frame.columns if name not in table.names]
    if unknown:
        raise InputError(f"Table {table.name} has no column {unknown[0]!r}; it has {', '.join(table.names)}.")
    out = {}
    absent = {kind: _missing(kind, len(frame)) for kind in {c.type for c in table.columns}}
    for column in table.columns:
        if column.name in frame.columns:
            out[column.name] = _cast(table, column, frame[column.name])
        elif column.required and len(frame):
            raise InputError(f"Table {table.name} needs the column {column.name!r}, which is absent.")
        else:
            out[column.name] = absent[column.type].set_axis(frame.index)
    # Nothing is copied: columns without values share them, until somebody writes to one.
    result = pd.DataFrame(out, copy=False).reset_index(drop=True)
    repeated = _repeated(result, table.key)
    if repeated.any():
        row = int(np.flatnonzero(repeated)[0])
        value = ", ".join(f"{name} = {result.at[row, name]!r}" for name in table.key)
        raise InputError(f"Table {table.name}, row {row + 1}: {value} occurs twice; it must be unique.")
    return _conforming(table, result)


def _missing(kind: str, n: int) -> pd.Series:
    """Return ``n`` missing values of a column's type."""
    if kind == "str":
        return pa.chunked_array([pa.nulls(n, pa.large_string())]).to_pandas()
    return pd.Series(np.full(n, None)).astype(_DTYPES[kind])


def _repeated(frame: pd.DataFrame, key: tuple[str, ...]) -> NDArray[np.bool_]:
    """Return which rows have a key that an earlier row has."""
    codes = np.zeros(len(frame), dtype=np.int64)
    for name in key:
        found, different = pd.factorize(frame[name])
        codes *= len(different)
        codes += found
        if len(key) > 2:  # the product of more could be too large
            codes = np.asarray(pd.factorize(codes)[0], dtype=np.int64)
    return pd.Series(codes).duplicated().to_numpy()


def _cast(table: Table, column: Column, values: pd.Series) -> pd.Series:
    """Cast one column, naming the first value that does not fit."""
    where = f"column {column.name}"
    try:
        cast = _typed(column, values)
    except (TypeError, ValueError) as error:
        for row, value in enumerate(values):
            try:
                _typed(column, pd.Series([value]))
            except (TypeError, ValueError):
                what = "no list" if column.type == "list" else f"not of type {column.type}"
                raise InputError(
                    f"Table {table.name}, row {row + 1}, {where}: {shorten(value)!r} is {what}."
                ) from error
        raise InputError(f"Table {table.name}, {where}: cannot be read as {column.type}.") from error
    if column.required and cast.hasnans:
        row = int(np.flatnonzero(cast.isna().to_numpy())[0])
        raise InputError(f"Table {table.name}, row {row + 1}, {where}: a value is required.")
    return cast


def _typed(column: Column, values: pd.Series) -> pd.Series:
    if column.type != "list":
        return values.astype(_DTYPES[column.type])
    return pd.Series([_as_list(value) for value in values], index=values.index, dtype="object")


def _as_list(value: object) -> list[str] | None:
    """Read a list cell: a list, a tuple, an array, one string, or nothing."""
    if type(value) is np.ndarray and value.dtype == object:  # as a file is read
        return [str(one) for one in value]
    if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA:
        return None
    if isinstance(value, str):
        return [value]
    if isinstance(value, (bytes, Mapping)):
        raise TypeError
    return [str(v) for v in value]  # type: ignore[attr-defined]
