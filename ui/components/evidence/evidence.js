// Every text from data is set as text: nothing here makes HTML of a string.
const make = (parent, name, style, text) => {
  const element = document.createElement(name);
  if (style) element.className = style;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};
const write = (parent, parts, style) => {
  for (const [text, marked] of parts) {
    if (marked) make(parent, "span", style, text);
    else parent.appendChild(document.createTextNode(text));
  }
};
const SAYS = { answer: "of the answer", reference: "of the reference", question: "of the question" };
const writeKinds = (parent, parts) => {
  for (const [kind, text] of parts) {
    if (kind) make(parent, "span", "word of-" + kind, text);
    else parent.appendChild(document.createTextNode(text));
  }
};
const slug = (state) => state.replaceAll(" ", "-");

export default function ({ parentElement, data }) {
  const bench = parentElement.querySelector(".bench");
  bench.replaceChildren();
  const marks = [];  // pairs of an element and the claims it stands for
  const rows = [];
  let open = null, timer = 0;

  // The note of a claim, and what is lit.
  const note = parentElement.querySelector(".note");
  const light = (claims, besides) => {
    for (const [mark, own] of marks) {
      mark.classList.toggle("lit", mark !== besides && own.some((claim) => claims.includes(claim)));
    }
  };
  const dark = () => {
    light([]);
    for (const row of rows) row.element.classList.remove("lit");
  };
  const hide = () => {
    clearTimeout(timer);
    note.hidden = true;
    if (note.showPopover && note.matches(":popover-open")) note.hidePopover();
    if (open) open.classList.remove("open");
    open = null;
    dark();
  };
  const later = () => { clearTimeout(timer); timer = setTimeout(hide, 200); };
  const place = () => {
    const lines = open.getClientRects(), first = lines[0], last = lines[lines.length - 1];
    if (!last || last.bottom < 0 || first.top > window.innerHeight) return hide();
    const box = note.getBoundingClientRect();
    const left = Math.max(8, Math.min(first.left, window.innerWidth - box.width - 8));
    const below = last.bottom + 6;
    const top = below + box.height < window.innerHeight - 8 ? below : Math.max(8, first.top - box.height - 6);
    note.style.left = left + "px";
    note.style.top = top + "px";
  };
  const showClaims = (mark, claims) => {
    clearTimeout(timer);
    if (open === mark) return;
    hide();
    open = mark;
    mark.classList.add("open");
    light(claims, mark);
    for (const row of rows) {
      row.element.classList.toggle("lit", row.claims.some((claim) => claims.includes(claim)));
    }
    note.replaceChildren();
    for (const index of claims) {
      const claim = data.answer.notes[index];
      const section = make(note, "section");
      make(section, "p", "head", claim.sign + " " + (index + 1) + ". " + claim.title);
      write(make(section, "p", "said"), claim.claim, "added");
      for (const line of claim.lines) make(section, "p", "", line);
    }
    note.hidden = false;
    // The top layer is cut off by no column or box of the page.
    if (note.showPopover) { note.popover = "manual"; note.showPopover(); }
    place();
  };
  const showRow = (row) => {
    clearTimeout(timer);
    if (open === row.element) return;
    hide();
    if (!row.claims.length) return;
    open = row.element;
    row.element.classList.add("lit");
    light(row.claims);
  };
  // A pointer, a finger or the focus on an element; leaving it ends what it shows.
  const pointing = (element, begin) => {
    element.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") begin(); });
    element.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") later(); });
    element.addEventListener("focusin", begin);
    element.addEventListener("focusout", later);
    element.addEventListener("click", begin);
  };

  // The answer.
  const { answer } = data;
  const asClaim = (mark, claims) => {
    mark.tabIndex = 0;
    mark.setAttribute("role", "button");
    mark.setAttribute("aria-describedby", "note");
    marks.push([mark, claims]);
    pointing(mark, () => showClaims(mark, claims));
  };
  const signed = (mark, claim) => make(mark, "span", "sign", answer.notes[claim].sign + (claim + 1) + " ");
  const said = make(bench, "div", "answer");
  for (const piece of answer.pieces) {
    if (!piece.claims.length) { write(said, piece.parts, ""); continue; }
    const mark = make(said, "span", "claim " + slug(piece.state));
    if (piece.first) signed(mark, piece.claims[0]);
    write(mark, piece.parts, "dropped");
    asClaim(mark, piece.claims);
  }
  if (answer.absent) make(said, "span", "absent", answer.absent);
  for (const [title, text] of data.beside || []) {
    const line = make(bench, "div", "beside");
    make(line, "span", "said", title + ": ");
    line.appendChild(document.createTextNode(text));
  }
  if (data.origins) make(bench, "p", "origins", data.origins);
  if (answer.elsewhere.length) {
    const list = make(bench, "div", "elsewhere");
    make(list, "span", "", "Claims that match no span of the answer:");
    const items = make(list, "ul");
    for (const claim of answer.elsewhere) {
      const mark = make(make(items, "li"), "span", "claim " + slug(answer.notes[claim].state));
      signed(mark, claim);
      write(mark, answer.notes[claim].claim, "added");
      asClaim(mark, [claim]);
    }
  }
  if (answer.legend.length) {
    const legend = make(bench, "div", "legend");
    for (const entry of answer.legend) {
      const item = make(legend, "span");
      const look = make(item, "span", "claim " + slug(entry.state));
      make(look, "span", "sign", entry.sign);
      look.appendChild(document.createTextNode(entry.label));
      item.appendChild(document.createTextNode(" (" + entry.n + ")"));
    }
    make(legend, "span", "hint", "Point at a claim or tap it to see its evidence.");
  }

  // The passages. Their order and number are kept from question to question.
  const controls = make(bench, "div", "controls");
  if (data.marked && data.marked.length) {
    const words = make(controls, "span", "hint", "Marked words: ");
    data.marked.forEach((kind, place) => {
      if (place) words.appendChild(document.createTextNode(", "));
      make(words, "span", "word of-" + kind, SAYS[kind]);
    });
  }
  const list = make(bench, "ol", "rows");
  list.setAttribute("aria-label", data.label || "Passages");
  const arrange = () => {
    const by = rows.slice();
    if (bench.byInfluence) by.sort((a, b) => b.bar.value - a.bar.value);
    by.forEach((row, place) => {
      list.appendChild(row.element);
      row.element.hidden = !bench.all && place >= data.at_first;
    });
  };
  const control = (name, label) => {
    const button = make(controls, "button", "control", label);
    button.type = "button";
    const press = () => button.setAttribute("aria-pressed", String(Boolean(bench[name])));
    press();
    button.addEventListener("click", () => { bench[name] = !bench[name]; press(); arrange(); });
  };
  const span = (parent, style, from, to) => {
    const element = make(parent, "div", style);
    element.style.left = Math.min(from, to) + "%";
    element.style.width = Math.abs(to - from) + "%";
  };
  for (const given of data.rows) {
    const element = make(list, "li", "row");
    const rank = make(element, "div", "rank", given.rank);
    rank.title = given.hint || "Retrieval rank";
    const about = make(element, "div", "about");
    const head = make(about, "div");
    make(head, "span", "title", given.title);
    if (given.gold) make(head, "span", "tag gold", "★ gold");
    for (const flag of given.flags) make(head, "span", "tag flag", "⚑ " + flag);
    const facts = make(about, "div", "facts");
    for (const [name, text] of given.facts) make(facts, "span", "", name ? name + " " + text : text);
    const row = { element, bar: given.bar, claims: given.claims.map(([claim]) => claim) };
    if (given.claims.length) {
      const supports = make(about, "button", "supports", "Supports claim");
      supports.type = "button";
      for (const [claim, text] of given.claims) {
        const mark = make(supports, "span", "", answer.notes[claim].sign + (claim + 1) + ": " + text);
        marks.push([mark, [claim]]);
      }
    }
    rows.push(row);
    pointing(element, () => showRow(row));

    const { bar } = given;
    if (bar) {
      const meter = make(element, "div", "meter");
      if (bar.value_at !== null) {
        const track = make(meter, "div", "bar");
        if (bar.noise_at !== null) span(track, "noise", bar.zero_at, bar.noise_at);
        // No influence is no bar, not a short one.
        if (bar.value) span(track, "value" + (bar.within ? " within" : ""), bar.zero_at, bar.value_at);
        if (bar.low_at !== null) span(track, "range", bar.low_at, bar.high_at);
      }
      make(meter, "div", "text", bar.text);
    }
    if (given.snippet.length) writeKinds(make(element, "div", "wide snippet"), given.snippet);
    if (given.change && !given.change.parts.length) make(facts, "span", "change", given.change.said);
    else if (given.change) {
      const change = make(element, "div", "wide change");
      make(change, "span", "said", given.change.said + " ");
      for (const [operation, text] of given.change.parts) {
        if (operation === "same") { change.appendChild(document.createTextNode(text)); continue; }
        const removed = operation === "removed";
        make(change, removed ? "del" : "ins", removed ? "del" : "ins", (removed ? "− " : "+ ") + text);
      }
    }
    if (given.text.length) {
      const details = make(element, "details", "wide");
      make(details, "summary", "", "Whole passage");
      writeKinds(make(details, "div", "text"), given.text);
    }
  }

  if (bench.byInfluence === undefined) bench.byInfluence = true;
  if (rows.length > 1 && rows.every((row) => row.bar)) control("byInfluence", "Most influential first");
  else bench.byInfluence = undefined;
  if (rows.length > data.at_first) control("all", "Show all " + rows.length + " passages");
  arrange();
  if (!rows.length) { list.remove(); controls.remove(); }

  const outside = (event) => {
    if (open && !event.composedPath().some((node) => node === open || node === note)) hide();
  };
  const escape = (event) => { if (event.key === "Escape") hide(); };
  const scrolled = (event) => { if (open && !note.hidden && !event.composedPath().includes(note)) place(); };
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
