// The keyboard: single keys, the list of them, and the palette, which finds everything that can be done from here.
// It uses the helpers of app.js.
"use strict";

const go = (path) => () => { location.href = base + path; };
// When nothing is being written.
const KEYS = {
  "/": ["Write a message", () => $("#message")?.focus()],
  q: ["Go to the next question", () => nextQuestion()],
  s: ["Sessions", go("/")],
  i: ["Inbox", go("/inbox")],
  t: ["Tasks", go("/tasks")],
  k: ["Previous message of yours", () => jump(-1)],
  j: ["Next message of yours", () => jump(1)],
  "?": ["These keys", () => help()],
};
const PALETTE_KEY = /Mac|iPhone|iPad/.test(navigator.platform) ? "⌘ K" : "Ctrl K";
function jump(by) {
  const said = all("[data-user]", $("main"));
  const here = said.map((one) => one.getBoundingClientRect().top - 90);
  const index = by < 0 ? here.findLastIndex((top) => top < -4) : here.findIndex((top) => top > 4);
  said[index]?.scrollIntoView({ block: "start" });
}

function nextQuestion() {
  const questions = all(".question");
  const here = questions.findIndex((one) => one.contains(document.activeElement));
  const next = questions[(here + 1) % questions.length];
  if (next) $("button", next)?.focus();
}

function dialogOf(id, label, children) {
  const dialog = make("dialog", { id }, children);
  dialog.setAttribute("aria-label", label);
  // A click beside it closes it.
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  body.append(dialog);
  return dialog;
}
function help() {
  let dialog = $("#keys");
  if (!dialog) {
    const keys = [[PALETTE_KEY, "Find a page, an action or a command"], ...Object.entries(KEYS).map(([key, [words]]) => [key, words]), ["Esc", "Close"]];
    const rows = keys.flatMap(([key, words]) => [make("dt", {}, [make("kbd", { textContent: key })]), make("dd", { textContent: words })]);
    const close = make("button", { type: "button", textContent: "Close", onclick: () => dialog.close() });
    dialog = dialogOf("keys", "Keys", [make("h2", { textContent: "Keys" }), make("dl", {}, rows), close]);
  }
  dialog.showModal();
}

// Everything that can be done from here: what is on the page now, pages, commands, and a search.
function actions() {
  const found = [];
  const add = (group, label, run, key) => found.push({ group, label, run, key });
  for (const button of all("main [data-post]:not(:disabled)")) {
    const within = button.closest(".question, .row, .queued, .panel");
    if (button.offsetParent === null || (within && !within.matches(".question"))) continue;
    const label = button.textContent.trim();
    add(within ? "Answer" : "This page", label, () => button.click());
  }
  if ($("#message")) add("This page", "Write a message", () => $("#message").focus(), "/");
  if ($(".question")) add("This page", "Go to the next question", KEYS.q[1], "q");
  if ($("main [data-user]")) {
    add("This page", "Previous message of yours", KEYS.k[1], "k");
    add("This page", "Next message of yours", KEYS.j[1], "j");
  }
  for (const link of all(".places li a")) {
    const label = $(".name", link).textContent;
    const key = Object.entries(KEYS).find(([, [words]]) => words === label)?.[0];
    add("Page", label, () => link.click(), key);
  }
  for (const link of all(".tabs a")) add("This task", link.textContent, () => link.click());
  for (const item of all("#completions li")) {
    const [usage, words] = [$("code", item).textContent, $("span", item).textContent];
    add("Command", `${usage}  ${words}`, () => { const field = $("#message"); field.value = `/${item.dataset.name} `; field.focus(); field.dispatchEvent(new Event("input")); });
  }
  add("Help", "List the keys", help, "?");
  return found;
}
// Every word that is written must be in it somewhere.
function fits(action, query) {
  const text = `${action.group} ${action.label}`.toLowerCase();
  return query.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
const SHOWN = 12;
let chosen = [];
function drawPalette() {
  const query = $("#palette-query").value.trim();
  chosen = actions().filter((one) => fits(one, query)).slice(0, SHOWN);
  if (query) chosen.push({ group: "Search", label: `Tasks with “${query}”`, run: go(`/tasks?q=${encodeURIComponent(query)}`) });
  $("#palette-list").replaceChildren(...chosen.map((one, index) => {
    const item = make("li", { id: `palette-${index}` }, [make("span", { className: "group", textContent: one.group }), make("span", { className: "label", textContent: one.label })]);
    if (one.key) item.append(make("kbd", { textContent: one.key }));
    item.setAttribute("role", "option");
    return item;
  }));
  mark(0);
}
function mark(index) {
  const items = all("#palette-list li");
  items.forEach((item, at) => item.setAttribute("aria-selected", String(at === index)));
  $("#palette-query").setAttribute("aria-activedescendant", items[index]?.id ?? "");
  items[index]?.scrollIntoView({ block: "nearest" });
}
function run(index) {
  const action = chosen[index];
  if (!action) return;
  $("#palette").close();
  action.run();
}
function palette() {
  let dialog = $("#palette");
  if (!dialog) {
    const query = make("input", { id: "palette-query", type: "text", className: "field", placeholder: "Find a page, an action or a command", autocomplete: "off", spellcheck: false });
    for (const [name, value] of Object.entries({ role: "combobox", "aria-label": "Find", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list" })) query.setAttribute(name, value);
    const list = make("ul", { id: "palette-list" });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "What can be done");
    dialog = dialogOf("palette", "Find a page, an action or a command", [query, list]);
    query.addEventListener("input", drawPalette);
    query.addEventListener("keydown", (event) => {
      const items = all("li", list);
      const now = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) mark((now + step + items.length) % items.length);
      else if (event.key === "Enter" && !event.isComposing) run(now);
      else return;
      event.preventDefault();
    });
    list.addEventListener("click", (event) => { const item = event.target.closest("li"); if (item) run(all("li", list).indexOf(item)); });
  }
  if (dialog.open) return dialog.close();
  $("#palette-query").value = "";
  dialog.showModal();
  drawPalette();
  $("#palette-query").focus();
}
for (const button of all("[data-palette]")) {
  button.hidden = false;
  $("kbd", button).textContent = PALETTE_KEY;
  button.onclick = palette;
}
for (const button of all("[data-keys]")) { button.hidden = false; button.onclick = help; }
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return palette();
  }
  // A dialog that was closed keeps the focus until the browser draws next.
  const isClosed = event.target.closest("dialog:not([open])");
  const writes = !isClosed && event.target.closest("input, textarea, select, [contenteditable], dialog");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = KEYS[event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
});
