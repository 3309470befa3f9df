"""The sentences of the English articles as a corpus: passages that end where a sentence ends."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from core.text.sentences import sentence_spans


def sentences(articles: Path) -> Iterator[dict[str, str]]:
    """Yield every sentence of the English articles, with the title of its article.

    Headings and tables are left out. Whether an article is English is read from its title: all letters ASCII.
    """
    for path in sorted(articles.glob("*.md")):
        title, *lines = path.read_text("utf-8").splitlines()
        if not title.isascii():
            continue
        for line in lines:
            if line and not line.startswith(("#", "|")):
                for start, end in sentence_spans(line):
                    yield {"title": title.removeprefix("# "), "text": line[start:end]}


def main(articles: str, out: str) -> None:
    """Write the corpus as JSON Lines."""
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in sentences(Path(articles)))
    Path(out).write_text("".join(lines), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
