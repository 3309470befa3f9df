"""The validators: each a small setting with one function that returns a verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.text.display import count
from core.text.prose import citations
from core.text.sentences import Span
from core.validation.figures import check_figures
from core.validation.types import Case, Code, Reason, Severity, Verdict

Guard = Callable[[str, str], bool]

_FOREIGN = "Answer and passages are in different languages: their words cannot be compared."
_SHOWN = 20  # spans of one verdict


@dataclass(frozen=True)
class CitationRequired:
    """Fails an answer that cites nothing, or passages that it was not given.

    Brackets, raised numbers, names with a year and addresses are citations. An answer that claims nothing
    needs none, nor one that hedges where nothing was retrieved. With ``asked`` off, as where the prompt does
    not ask for citations, only unknown ones fail.
    """

    asked: bool = True

    def check(self, case: Case) -> Verdict:
        """Return the verdict; the number is that of the citations, or of the unknown ones."""
        if not case.says_something or case.claims_nothing:
            return _verdict(self, None, Code.NOT_APPLICABLE, "There is no statement that needs a citation.")
        cited = citations(case.spoken)
        severity = Severity.WARNING if case.passages else Severity.CRITICAL
        unknown = [one.span for one in cited if not _is_known(one.span, one.numbers, case)]
        if unknown:
            refer = "refers" if len(unknown) == 1 else "refer"
            of = count(len(cited), "citation")
            sentence = f"{len(unknown)} of {of} {refer} to passages that were not given."
            return _verdict(self, False, Code.UNKNOWN_CITATION, sentence, len(unknown), unknown, severity)
        if cited:
            return _verdict(self, True, Code.FINE, f"Citations: {len(cited)}.", len(cited))
        if not case.passages and case.uncertain:
            return _verdict(
                self,
                None,
                Code.NOT_APPLICABLE,
                "Nothing was retrieved, and the answer says that it is not certain.",
            )
        if not self.asked:
            return _verdict(self, None, Code.NOT_APPLICABLE, "The prompt does not ask for citations.")
        sentence = "The answer cites no source."
        return _verdict(self, False, Code.MISSING_CITATION, sentence, 0, severity=severity)


@dataclass(frozen=True)
class EvidenceOverlap:
    """Fails an answer whose words of content are in none of the passages.

    Does not apply where a passage is in another language than the answer and they share too few words.
    ``threshold``: the smallest share that passes, in [0, 1]. See `core.validation.types.overlap`.
    """

    threshold: float = 0.01

    def check(self, case: Case) -> Verdict:
        """Return the verdict; the number is the overlap."""
        if case.claims_nothing or case.overlap is None:
            return _verdict(self, None, Code.NOT_APPLICABLE, "There is nothing to compare with the passages.")
        share = case.overlap
        if share < self.threshold and case.is_foreign:
            return _verdict(self, None, Code.OTHER_LANGUAGE, _FOREIGN)
        if share < self.threshold:
            sentence = f"{share:.0%} of the answer's words are in a passage; {self.threshold:.0%} needed."
            return _verdict(self, False, Code.LOW_OVERLAP, sentence, share, severity=Severity.WARNING)
        sentence = f"{share:.0%} of the answer's words are in a passage."
        return _verdict(self, True, Code.FINE, sentence, share)


@dataclass(frozen=True)
class NumericUnits:
    """Fails an answer with a number, a unit or a date that neither the passages nor the question have.

    See `core.validation.figures.check_figures`.
    """

    def check(self, case: Case) -> Verdict:
        """Return the verdict; the number is that of the numbers without a source, or of those compared."""
        if not case.passages or not case.says_something:
            return _verdict(self, None, Code.NOT_APPLICABLE, "There is nothing to compare with the passages.")
        found = check_figures(case.prose, case.passages, case.question)
        if not found.n:
            return _verdict(self, None, Code.NOT_APPLICABLE, "The answer has no number to compare.")
        missing = found.unsupported
        if missing:
            are = "is" if len(missing) == 1 else "are"
            sentence = f"{len(missing)} of {count(found.n, 'number')} {are} not in the passages."
            code, severity = Code.UNSUPPORTED_NUMBER, Severity.WARNING
            return _verdict(self, False, code, sentence, len(missing), missing, severity)
        return _verdict(self, True, Code.FINE, f"Numbers found in the passages: {found.n}.", found.n)


NumericUnitsBasic = NumericUnits  # its name in other collections of validators


@dataclass(frozen=True)
class ConfidenceValidator:
    """Fails an answer that does not say that it is uncertain although it has no ground, and an empty one.

    No ground: nothing was retrieved, or the overlap with the best passage is below ``threshold``; not known
    where a passage is in another language. With
    ``require_uncertainty_when_no_context`` off, only an answer without ground that claims certainty fails.
    """

    require_uncertainty_when_no_context: bool = True
    threshold: float = 0.01

    def check(self, case: Case) -> Verdict:
        """Return the verdict; the number is the overlap, None where nothing was retrieved."""
        critical = Severity.CRITICAL
        if case.is_empty:
            return _verdict(self, False, Code.EMPTY_ANSWER, "The answer is empty.", severity=critical)
        if not case.says_something:
            return _verdict(self, None, Code.NOT_APPLICABLE, "The answer is code or citations alone.")
        low = case.overlap is not None and case.overlap < self.threshold
        foreign = low and case.is_foreign
        grounded = bool(case.passages) and (not low or foreign)
        certain = case.certainty.certain
        if certain and not grounded:
            sentence = "The answer claims to be certain, and no passage supports it."
            return _verdict(self, False, Code.OVERCONFIDENT, sentence, case.overlap, certain, critical)
        if case.uncertain:
            sentence, code = "The answer says that it is not certain.", Code.UNCERTAINTY_EXPRESSED
            return _verdict(self, True, code, sentence, case.overlap, case.certainty.hedges)
        if foreign:
            return _verdict(self, None, Code.OTHER_LANGUAGE, _FOREIGN)
        if grounded or not self.require_uncertainty_when_no_context:
            sentence = "Nothing calls for the answer to express uncertainty."
            return _verdict(self, True, Code.FINE, sentence, case.overlap)
        sentence = "No passage supports the answer, and it does not say that it is uncertain."
        code = Code.MISSING_UNCERTAINTY if case.passages else Code.MISSING_UNCERTAINTY_NO_CONTEXT
        return _verdict(self, False, code, sentence, case.overlap, severity=critical)


@dataclass(frozen=True)
class EthicsAdapter:
    """Asks a function of one's own whether an answer may be shown.

    ``guard``, or by the name it has in other frameworks ``guard_callable``, takes the question and the answer
    and returns True where it may. One that raises an exception fails the answer: nobody has said that it may
    be shown.
    """

    guard: Guard | None = None
    guard_callable: Guard | None = None

    def check(self, case: Case) -> Verdict:
        """Return the verdict; there is no number."""
        guard = self.guard or self.guard_callable
        if guard is None:
            return _verdict(self, None, Code.NOT_APPLICABLE, "No guard is set.")
        try:
            allowed = guard(case.question, case.answer)
        except Exception:
            sentence = "The guard failed, so nobody has said that the answer may be shown."
            return _verdict(self, False, Code.GUARD_FAILED, sentence, severity=Severity.CRITICAL)
        if allowed:
            return _verdict(self, True, Code.FINE, "The guard accepts the answer.")
        sentence = "The guard rejects the answer."
        return _verdict(self, False, Code.GUARD_REJECTED, sentence, severity=Severity.CRITICAL)


def _is_known(span: Span, numbers: tuple[int, ...], case: Case) -> bool:
    # Passages count from 0 or 1; a mark that a passage has itself was copied with its words.
    mark = case.answer[slice(*span)]
    n = len(case.given) if case.passages else 0
    return (bool(n) or not numbers) and (
        all(number <= n for number in numbers) or any(mark in text for text in case.passages)
    )


def _verdict(
    validator: object,
    passed: bool | None,
    code: Code,
    sentence: str,
    value: float | None = None,
    spans: Sequence[Span] = (),
    severity: Severity = Severity.NONE,
) -> Verdict:
    name = type(validator).__name__
    return Verdict(name, passed, severity, Reason(code, value), tuple(spans)[:_SHOWN], sentence)
