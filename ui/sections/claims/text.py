"""The answer as a text whose claims show their evidence to the pointer, the keyboard and the finger.

Texts from data reach the browser as data and are put on the page as text, never as HTML.
"""

from __future__ import annotations

import streamlit as st

from core.charts.theme import STYLES
from core.claims.analysis.answer import AnswerClaims
from ui.sections.claims.pieces import legend, notes, pieces

# How a claim is underlined says its state as well as the colour does.
_LINES = {
    "well supported": "solid",
    "fragile": "dashed",
    "joint": "double",
    "unsupported": "wavy",
    "unscored": "dotted",
    "irrelevant": "solid",
}
_CSS = """
.answer {
  font-family: var(--st-font); font-size: 1rem; line-height: 2; color: var(--st-text-color);
  white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;
}
.claim {
  --c: var(--st-text-color); cursor: help; border-radius: 3px; padding: 2px 1px;
  background: color-mix(in srgb, var(--c) 16%, transparent);
  text-decoration: underline var(--line, solid) var(--c) 2px;
  text-underline-offset: 4px; text-decoration-skip-ink: none;
}
.claim:hover, .claim:focus, .claim.open { background: color-mix(in srgb, var(--c) 34%, transparent); }
.claim:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.sign {
  display: inline-block; user-select: none; font-size: .72em; padding-right: 3px;
  color: color-mix(in srgb, var(--c) 70%, var(--st-text-color));
}
.dropped { font-style: italic; text-decoration: line-through; opacity: .75; }
.added { font-weight: 650; text-decoration: underline dotted; }
.legend {
  display: flex; flex-wrap: wrap; gap: 4px 18px; margin-top: 10px;
  font-family: var(--st-font); font-size: .875rem; line-height: 1.9; color: var(--st-text-color);
}
.legend .claim { cursor: default; }
.note {
  position: fixed; inset: auto; margin: 0; box-sizing: border-box; z-index: 1000;
  width: max-content; max-width: min(30rem, calc(100vw - 16px)); max-height: 60vh; overflow: auto;
  padding: 10px 12px; border: 1px solid var(--st-border-color);
  border-radius: var(--st-base-radius, 8px); box-shadow: 0 4px 18px rgba(0, 0, 0, .25);
  background: var(--st-background-color); color: var(--st-text-color);
  font-family: var(--st-font); font-size: .875rem; line-height: 1.45; overflow-wrap: anywhere;
}
.note[hidden] { display: none; }
.note p { margin: 0 0 4px; unicode-bidi: plaintext; }
.note .head { font-weight: 650; margin-top: 4px; }
.note .said { margin-bottom: 6px; }
.note section + section { border-top: 1px solid var(--st-border-color); margin-top: 8px; padding-top: 4px; }
""" + "\n".join(
    f".{state.replace(' ', '-')} {{ --c: {STYLES[state].color}; --line: {line}; }}"
    for state, line in _LINES.items()
)
_HTML = """<div class="answer"></div><div class="legend"></div>
<div class="note" role="tooltip" id="note" hidden></div>"""
_JS = """
const make = (parent, name, style, text) => {
  const element = document.createElement(name);
  if (style) element.className = style;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const slug = (state) => state.replaceAll(" ", "-");
const write = (parent, parts, style) => {
  for (const [text, marked] of parts) {
    if (marked) make(parent, "span", style, text);
    else parent.appendChild(document.createTextNode(text));
  }
};

export default function ({ parentElement, data }) {
  const answer = parentElement.querySelector(".answer");
  const legend = parentElement.querySelector(".legend");
  const note = parentElement.querySelector(".note");
  answer.replaceChildren();
  legend.replaceChildren();
  let open = null, timer = 0;

  const hide = () => {
    clearTimeout(timer);
    note.hidden = true;
    if (note.showPopover && note.matches(":popover-open")) note.hidePopover();
    if (open) open.classList.remove("open");
    open = null;
  };
  const place = () => {
    const lines = open.getClientRects(), first = lines[0], last = lines[lines.length - 1];
    if (last.bottom < 0 || first.top > window.innerHeight) return hide();
    const box = note.getBoundingClientRect();
    const left = Math.max(8, Math.min(first.left, window.innerWidth - box.width - 8));
    const below = last.bottom + 6;
    const top = below + box.height < window.innerHeight - 8 ? below : Math.max(8, first.top - box.height - 6);
    note.style.left = left + "px";
    note.style.top = top + "px";
  };
  const later = () => { clearTimeout(timer); timer = setTimeout(hide, 200); };
  const show = (span, claims) => {
    clearTimeout(timer);
    if (open === span) return;
    hide();
    open = span;
    span.classList.add("open");
    note.replaceChildren();
    for (const index of claims) {
      const claim = data.notes[index];
      const section = make(note, "section");
      make(section, "p", "head", claim.sign + " " + claim.title);
      write(make(section, "p", "said"), claim.claim, "added");
      for (const line of claim.lines) make(section, "p", "", line);
    }
    note.hidden = false;
    // The top layer is cut off by no column or box of the page.
    if (note.showPopover) { note.popover = "manual"; note.showPopover(); }
    place();
  };

  for (const piece of data.pieces) {
    if (!piece.claims.length) { write(answer, piece.parts, ""); continue; }
    const span = make(answer, "span", "claim " + slug(piece.state));
    span.tabIndex = 0;
    span.setAttribute("aria-describedby", "note");
    if (piece.first) {
      const sign = make(span, "span", "sign", data.notes[piece.claims[0]].sign);
      sign.setAttribute("aria-label", piece.state);
      sign.setAttribute("role", "img");
    }
    write(span, piece.parts, "dropped");
    span.addEventListener("pointerenter", () => show(span, piece.claims));
    span.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") later(); });
    span.addEventListener("focus", () => show(span, piece.claims));
    span.addEventListener("click", () => show(span, piece.claims));
    span.addEventListener("blur", later);
  }
  for (const entry of data.legend) {
    const item = make(legend, "span");
    const look = make(item, "span", "claim " + slug(entry.state));
    make(look, "span", "sign", entry.sign);
    look.appendChild(document.createTextNode(entry.label));
    item.appendChild(document.createTextNode(" (" + entry.n + ")"));
  }
  const outside = (event) => {
    if (open && !event.composedPath().some((node) => node === open || node === note)) hide();
  };
  const escape = (event) => { if (event.key === "Escape") hide(); };
  const scrolled = (event) => { if (open && !event.composedPath().includes(note)) place(); };
  note.onpointerenter = () => clearTimeout(timer);
  note.onpointerleave = later;
  document.addEventListener("pointerdown", outside);
  document.addEventListener("keydown", escape);
  document.addEventListener("scroll", scrolled, true);
  return () => {
    hide();
    document.removeEventListener("pointerdown", outside);
    document.removeEventListener("keydown", escape);
    document.removeEventListener("scroll", scrolled, true);
  };
}
"""
_component = st.components.v2.component("leadline_claim_text", html=_HTML, css=_CSS, js=_JS)


def draw(answer: AnswerClaims) -> None:
    """Draw the text of an answer with its claims coloured, underlined and ready to tell about themselves."""
    _component(
        key="claim_text", data={"pieces": pieces(answer), "notes": notes(answer), "legend": legend(answer)}
    )
