// Every text from data is set as text: nothing here makes HTML of a string.
const make = (parent, name, style, text) => {
  const element = document.createElement(name);
  if (style) element.className = style;
  if (text !== undefined) element.textContent = text;
  parent.appendChild(element);
  return element;
};

export default function ({ parentElement, data, setTriggerValue }) {
  const list = parentElement.querySelector(".prompt");
  const told = parentElement.querySelector(".told");
  const given = JSON.stringify(data);
  // The page is drawn again while somebody types: what is on it stays.
  if (list.given === given) return;
  list.given = given;
  list.replaceChildren();

  const rows = () => [...list.children];
  const send = () => {
    const order = rows().map((row) => row.id_);
    setTriggerValue("moved", { order, keep: rows().filter((row) => row.on.checked).map((row) => row.id_) });
  };
  const number = () => rows().filter((row) => row.on.checked).forEach((row, i) => { row.place.textContent = i + 1; });
  const settle = (row, control) => {
    list.focused = [row.id_, control];
    told.textContent = "“" + row.name + "” is now passage " + (rows().indexOf(row) + 1) + " of " + rows().length + ".";
    send();
  };
  const move = (row, by, control) => {
    const all = rows(), at = all.indexOf(row), to = at + by;
    if (to < 0 || to >= all.length) return;
    list.insertBefore(row, by < 0 ? all[to] : all[to].nextSibling);
    settle(row, control);
  };
  const button = (parent, name, label, sign, press) => {
    const element = make(parent, "button", name, sign);
    element.type = "button";
    element.setAttribute("aria-label", label);
    element.title = label;
    element.addEventListener("click", press);
    return element;
  };
  // A mouse, a pen or a finger: the others make room. The row itself is not moved, or it would lose the pointer.
  const draggable = (row, handle) => {
    let before = null;
    const middle = (other) => {
      const box = other.getBoundingClientRect();
      return box.top + box.height / 2;
    };
    handle.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      handle.setPointerCapture(event.pointerId);
      before = rows().indexOf(row);
      row.classList.add("dragged");
    });
    handle.addEventListener("pointermove", (event) => {
      if (before === null) return;
      const y = event.clientY;
      while (row.nextSibling && y > middle(row.nextSibling)) list.insertBefore(row.nextSibling, row);
      while (row.previousSibling && y < middle(row.previousSibling)) {
        list.insertBefore(row.previousSibling, row.nextSibling);
      }
    });
    const end = () => {
      if (before === null) return;
      const moved = before !== rows().indexOf(row);
      before = null;
      row.classList.remove("dragged");
      if (moved) settle(row, "handle");
    };
    handle.addEventListener("pointerup", end);
    handle.addEventListener("pointercancel", end);
  };

  for (const one of data.rows) {
    const row = make(list, "li", one.on ? "row" : "row off");
    row.id_ = one.id;
    row.name = one.title || one.text.slice(0, 40);
    const handle = make(row, "span", "handle", "⠿");
    handle.title = "Drag to another place";
    handle.setAttribute("aria-hidden", "true");
    draggable(row, handle);
    row.place = make(row, "span", "place", one.on ? "" : "–");
    const body = make(row, "div", "body");
    const head = make(body, "label", "head");
    row.on = make(head, "input", "");
    row.on.type = "checkbox";
    row.on.checked = one.on;
    row.on.setAttribute("aria-label", "In the prompt: " + row.name);
    row.on.addEventListener("change", () => { list.focused = [one.id, "on"]; send(); });
    make(head, "span", "title", row.name);
    for (const tag of one.tags) make(head, "span", "tag", tag);
    const text = make(body, "div", "text", one.text);
    const tools = make(row, "div", "tools");
    button(tools, "up", "Move up: " + row.name, "↑", () => move(row, -1, "up"));
    button(tools, "down", "Move down: " + row.name, "↓", () => move(row, 1, "down"));
    const edit = button(tools, "edit", "Edit: " + row.name, "Edit", () => {
      edit.hidden = true;
      const field = document.createElement("textarea");
      field.value = one.text;
      field.rows = 5;
      field.setAttribute("aria-label", "Text of " + row.name);
      text.replaceWith(field);
      const below = make(body, "div", "below");
      const close = () => { field.replaceWith(text); below.remove(); edit.hidden = false; edit.focus(); };
      const use = make(below, "button", "use", "Use this text");
      use.type = "button";
      use.addEventListener("click", () => {
        const same = field.value === one.text;
        close();
        if (!same) setTriggerValue("written", { id: one.id, text: field.value });
      });
      const cancel = make(below, "button", "", "Cancel");
      cancel.type = "button";
      cancel.addEventListener("click", close);
      if (one.edited) {
        const original = make(below, "button", "", "Original text");
        original.type = "button";
        original.addEventListener("click", () => setTriggerValue("written", { id: one.id, text: null }));
      }
      field.focus();
    });
  }
  number();
  // What was pressed keeps the focus, so that a passage can go further with the same key.
  if (list.focused) {
    const [id, control] = list.focused;
    const row = rows().find((one) => one.id_ === id);
    const target = row && (control === "on" ? row.on : row.querySelector("." + control));
    if (target && target.focus) target.focus({ preventScroll: true });
    list.focused = null;
  }
}
