"""What several journeys do: look at a page in every form, choose, upload, connect to a server."""

from __future__ import annotations

import pytest

from tests.e2e.running_app import settle

# How a journey looks at its pages. One look is enough for most: every page is looked at in both by test_every_page.
WIDE, PHONE, BOTH = (
    pytest.mark.parametrize(("width", "theme"), looks)
    for looks in ([(1280, "light")], [(390, "dark")], [(1280, "light"), (390, "dark")])
)
# Whether the ground of the page is dark, or light, as wanted.
GROUND = """dark => {
  const ground = getComputedStyle(document.querySelector("[data-testid='stApp']")).backgroundColor;
  const [r, g, b] = ground.match(/\\d+/g).map(Number);
  return (r + g + b < 384) === dark;
}"""


def main_text(page) -> str:
    """Return the text of the page, without the signs that keep addresses from becoming links and lines whole."""
    return page.get_by_test_id("stMain").inner_text().replace("\u2060", "").replace("\u00a0", " ")


def sidebar_text(page) -> str:
    """Return the text beside the page."""
    return page.get_by_test_id("stSidebar").inner_text()


def sideways(page) -> int:
    """Return by how many pixels the page is wider than the screen."""
    return page.evaluate(
        "() => { const m = document.querySelector(\"[data-testid='stMain']\");"
        " return Math.max(m.scrollWidth - m.clientWidth, document.documentElement.scrollWidth - innerWidth); }"
    )


def unfold(page, title: str) -> None:
    """Open what a page keeps folded."""
    page.get_by_test_id("stExpander").locator("summary", has_text=title).first.click()
    settle(page)


def upload(page, app: str, name: str, content: str) -> None:
    """Upload a CSV file on the Data page."""
    page.goto(f"{app}/data?door=Upload")
    settle(page)
    page.set_input_files(
        "input[type='file']", {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_text("The file is loaded and shown on every page.").wait_for(timeout=60_000)
    settle(page)


def choose(page, label: str, option: str) -> None:
    """Choose an option of a menu."""
    from playwright.sync_api import TimeoutError as TimedOut

    wanted = page.get_by_role("option", name=option, exact=True)
    for _ in range(5):
        page.get_by_role("combobox", name=label).click()
        try:
            wanted.click(timeout=1_500)
            break
        except TimedOut:  # the page was drawn anew, which closes an open menu
            page.keyboard.press("Escape")
            settle(page)
    settle(page)


def wait_for_value(page, label: str, text: str) -> None:
    """Wait until a text field has this text; a field that is drawn anew is empty for a moment."""
    from playwright.sync_api import expect

    expect(page.get_by_role("textbox", name=label, exact=True)).to_have_value(text, timeout=60_000)


def connect(page, back_end: str, address: str) -> None:
    """Choose a back end and type the address of its server."""
    choose(page, "Back end", back_end)
    field = page.get_by_role("textbox", name="Address of the server")
    field.fill(address)
    field.press("Enter")
    # A text field until the server was asked, then a menu.
    page.get_by_role("combobox", name="Model").wait_for(timeout=60_000)
    settle(page)
    assert f"Address: {address}" in main_text(page)


def published_shape() -> str:
    """43 questions of 10: 16 empty baselines, 8 inert, 19 with an order that can be compared."""
    lines = [
        "query,baseline_answer,spearman_rho,spearman_pvalue,dominance_ratio,influence_entropy,is_divergent,"
        "doc_id,passage,retrieval_rank,retrieval_score,rouge_l,influence_score,influence_rank"
    ]
    for q in range(43):
        kind = "empty" if q < 16 else "inert" if q < 24 else "plain"
        for d in range(10):
            influence = {"empty": 1.0, "inert": 0.0, "plain": round(((d * 7 + q) % 10) / 10, 1)}[kind]
            rho = 1.0 if kind != "plain" else -0.2
            answer = "" if kind == "empty" else f"answer {q}"
            lines.append(
                f"question {q},{answer},{rho},0.0,0.1,2.3,{rho < 0.7},{d},,{d + 1},{10 - d},"
                f"{round(1 - influence, 1)},{influence},{d + 1}"
            )
    return "\n".join(lines) + "\n"
