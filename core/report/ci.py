"""Outcomes of checks as CI systems show them: JUnit XML, and Markdown for a pull request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from core.report.regression import Regression
from core.report.text import Gate, finding_text
from core.text.display import one_line, shorten, visible
from core.text.strict import clean

_ROWS = 50  # questions in Markdown: a comment on a pull request is limited
# What XML 1.0 cannot hold even escaped; `visible` has replaced the control characters.
_NOT_XML = re.compile("[\ufffe\uffff]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>&~@:/$^])")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was checked: its name, what came of it, and whether it fails."""

    name: str
    text: str
    failed: bool


def cases_of(found: Gate | Regression) -> tuple[Case, ...]:
    """Return what a gate checked: itself, then each finding that fails it, or each question that broke.

    A question that broke fails only where the gate does: single questions change by chance, too.
    """
    if isinstance(found, Gate):
        said = found.to_text().split("\n")[0]
        own = [Case(f"{one.diagnostic}: {one.name}", finding_text(one), failed=True) for one in found.failed]
    else:
        said = "\n".join(found.sentences)
        own = [
            Case(
                f"{row.query_id}: {shorten(row.question)}",
                f"No longer correct.\nBaseline: {row.before}\nNow: {row.now}",
                failed=not found.passed,
            )
            for row in found.broken.itertuples()
        ]
    name = "findings" if isinstance(found, Gate) else "loss against the baseline"
    return (Case(name, said, failed=not found.passed), *own)


def junit_xml(gates: Sequence[Sequence[Case]]) -> bytes:
    """Return the cases of some gates as JUnit XML; the text of one that passes is its output."""
    cases = [case for each in gates for case in each]
    failures = str(sum(case.failed for case in cases))
    suite = Element("testsuite", name="leadline check", tests=str(len(cases)), failures=failures)
    for case in cases:
        one = SubElement(suite, "testcase", classname="leadline.check", name=_xml(one_line(case.name)))
        if case.failed:
            first = _xml(case.text.split("\n")[0])
            SubElement(one, "failure", message=first).text = _xml(case.text)
        else:
            SubElement(one, "system-out").text = _xml(case.text)
    found: bytes = tostring(suite, encoding="utf-8", xml_declaration=True)
    return found


def markdown(gates: Sequence[Sequence[Case]]) -> bytes:
    """Return the cases of some gates as Markdown for a pull request, with at most 50 lines below each.

    Texts of the data are escaped: they name nobody, link nowhere and make no heading.
    """
    return "\n".join(_section(*each) for each in gates).encode()


def _section(gate: Case, *rest: Case) -> str:
    first, *more = gate.text.split("\n")
    lines = [
        f"### {'❌' if gate.failed else '✅'} Leadline: {_md(first)}",
        *("\n" + _md(one) for one in more),
    ]
    if rest:
        lines += ["", f"<details><summary>Details ({len(rest):,})</summary>", ""]
        for case in rest[:_ROWS]:
            lines.append(f"- {_md(case.name)}")
            lines += [f"  - {_md(shorten(line))}" for line in case.text.split("\n") if line.strip()]
        if len(rest) > _ROWS:
            lines.append(f"- and {len(rest) - _ROWS:,} more")
        lines += ["", "</details>"]
    return "\n".join(lines) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", visible(clean(text)))


def _md(text: str) -> str:
    """Return a text that Markdown shows as it is: every sign with a meaning is an HTML entity.

    A word joiner after @ and # keeps the site from making mentions and references of what was rendered.
    """
    line = one_line(clean(text)).replace("@", "@\u2060").replace("#", "#\u2060")
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", line)
