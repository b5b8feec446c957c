// The script of every page: keeps it up to date, sends what a person does, and says what it knows.
// It draws nothing itself: what changes comes from the server as the HTML of one element.
"use strict";

const body = document.body;
const view = body.dataset.view;
const version = document.documentElement.dataset.version;
// The path under which a proxy shows the server.
const base = document.documentElement.dataset.base;
const pageTitle = document.title;
const $ = (selector, from = document) => from.querySelector(selector);
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

// Time: by the reader's own clock.
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
function localTimes(root) {
  for (const element of all("time[data-time]", root)) {
    const at = new Date(element.dateTime);
    const today = at.toDateString() === new Date().toDateString();
    element.textContent = (today ? clock : day).format(at);
    element.title = at.toLocaleString();
  }
}
function elapsed(seconds) {
  const pad = (number) => String(number).padStart(2, "0");
  if (seconds < 60) return `${seconds} s`;
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours ? `${hours}:${pad(minutes)}:${pad(seconds % 60)}` : `${minutes}:${pad(seconds % 60)}`;
}
function countSeconds(root = document) {
  for (const element of all("[data-since]", root)) {
    const seconds = Math.max(0, Math.floor((Date.now() - Date.parse(element.dataset.since)) / 1000));
    const text = elapsed(seconds);
    if (element.textContent !== text) element.textContent = text;
  }
}
setInterval(() => { if (!document.hidden && $("[data-since]")) countSeconds(); }, 1000);

// What the page knows about its connection.
let lostSince = null;
function banner() {
  const line = $("#banner");
  const text = reloadWanted ? "Windlass was updated. " : lostSince ? `Disconnected since ${clock.format(lostSince)}. Trying again …` : "";
  if (line.dataset.text === text) return;
  line.dataset.text = text;
  line.textContent = text;
  if (reloadWanted) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load the page again";
    line.append(link);
  }
}
let reloadWanted = false;
let sayTimer;
function say(text) {
  $("#said").textContent = text;
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => { $("#said").textContent = ""; }, 6000);
}

// Patches: elements by id, and the order of lists.
function applyPatch(patch) {
  const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
  const fresh = new Map();
  let added = false;
  for (const [id, mark, html] of patch.put ?? []) {
    const old = document.getElementById(id);
    if (old && old.dataset.h === mark) continue;
    const element = document.createElement("div");
    element.id = id;
    element.dataset.h = mark;
    const template = document.createElement("template");
    template.innerHTML = html;
    element.append(template.content);
    localTimes(element);
    countSeconds(element);
    if (old) { keepState(old, element); old.replaceWith(element); restoreFocus(); }
    else { fresh.set(id, element); added = true; }
  }
  for (const [list, ids] of Object.entries(patch.order ?? {})) {
    const parent = document.getElementById(list);
    if (!parent) continue;
    const wanted = new Set(ids);
    for (const child of [...parent.children]) if (!wanted.has(child.id)) child.remove();
    let place = parent.firstElementChild;
    for (const id of ids) {
      const element = document.getElementById(id) ?? fresh.get(id);
      if (!element) continue;
      if (element === place) place = place.nextElementSibling;
      else parent.insertBefore(element, place);
    }
  }
  if (patch.title !== undefined) title = patch.title;
  showCount();
  if ($("#log")) {
    if (atEnd) scrollTo(0, document.documentElement.scrollHeight);
    else if (added) showBelow();
  }
}
let focusId = null, selection = null;
function keepState(old, element) {
  for (const open of all("details[id]", old)) {
    const same = document.getElementById.call(document, open.id) && element.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = open.open;
  }
  for (const field of all("input[id], textarea[id], select[id]", old)) {
    const same = element.querySelector(`#${CSS.escape(field.id)}`);
    if (same) same.value = field.value;
  }
  const focused = document.activeElement;
  focusId = focused && old.contains(focused) ? focused.id : null;
  selection = focusId && "selectionStart" in focused ? [focused.selectionStart, focused.selectionEnd] : null;
}
function restoreFocus() {
  const element = focusId && document.getElementById(focusId);
  if (!element) return;
  element.focus({ preventScroll: true });
  if (selection) element.setSelectionRange(...selection);
  focusId = null;
}
function showBelow() {
  if ($(".below")) return;
  const button = document.createElement("button");
  button.className = "below";
  button.type = "button";
  button.textContent = "New below";
  button.onclick = () => { button.remove(); scrollTo({ top: document.documentElement.scrollHeight }); };
  $("#composer")?.before(button);
}
addEventListener("scroll", () => {
  if (innerHeight + scrollY >= document.documentElement.scrollHeight - 80) $(".below")?.remove();
}, { passive: true });

// The number of open questions, in the title and in the icon.
let title = pageTitle.replace(/ · Windlass$/, "");
let lastCount = null;
function showCount() {
  const count = Number($("[data-count]")?.dataset.count ?? 0);
  document.title = `${count ? `(${count}) ` : ""}${title} · Windlass`;
  if (count === lastCount) return;
  const icon = $("#icon");
  icon.dataset.plain ??= icon.href;
  icon.href = count ? badgeIcon() : icon.dataset.plain;
  if (lastCount !== null && count > lastCount) notify(count);
  lastCount = count;
}
function badgeIcon() {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><g fill="none" stroke="#1d5f8a" stroke-width="2.4" stroke-linecap="round"><circle cx="12" cy="12" r="5"/><path d="M12 2v5M12 17v5M2 12h5M17 12h5"/></g><circle cx="18" cy="6" r="6" fill="#c25a00"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
// Only when no page is seen: whoever looks at one sees the question.
function notify(count) {
  const wanted = store("notify") === "1" && "Notification" in window && Notification.permission === "granted";
  if (!wanted || !document.hidden || !isLeader) return;
  const note = new Notification("Windlass waits for you", { body: count === 1 ? "One open question" : `${count} open questions`, tag: "windlass" });
  note.onclick = () => { focus(); location.href = `${base}/inbox`; note.close(); };
}
for (const button of all("[data-notify]")) {
  if (!("Notification" in window)) continue;
  button.hidden = false;
  const draw = () => { button.textContent = store("notify") === "1" ? "Notifications are on" : "Notify me"; };
  draw();
  button.onclick = async () => {
    const on = store("notify") === "1" || (await Notification.requestPermission()) !== "granted";
    store("notify", on ? "0" : "1");
    draw();
  };
}
function store(name, value) {
  try {
    if (value === undefined) return localStorage.getItem(`windlass.${name}`);
    localStorage.setItem(`windlass.${name}`, value);
  } catch { return null; }
}

// The stream. One for all tabs of a browser: browsers allow six connections to a server, and each stream takes one.
// The tab that holds the lock has it, and passes on what comes; the others tell it what they show.
const CONNECT_MS = 10_000, SILENT_MS = 40_000;
const channel = "BroadcastChannel" in window ? new BroadcastChannel("windlass") : null;
const tab = Math.random().toString(36).slice(2);
let isLeader = false, source = null, heard = 0, watchdog = null, release = null, retryMs = 500;
const others = new Map();
function shown() {
  const now = Date.now();
  for (const [id, one] of others) if (now - one.at > 30_000) others.delete(id);
  return [...new Set([view, ...[...others.values()].map((one) => one.view)])].slice(0, 20);
}
function take(message) {
  if (message.kind === "hello") {
    lostSince = null;
    reloadWanted = message.data.version !== version;
    banner();
  } else if (message.kind === "lost") {
    lostSince ??= new Date();
    banner();
  } else if (message.kind === "patch" && message.data.view === view) {
    applyPatch(message.data);
  } else if (message.kind === "gone") {
    location.href = `${base}/login`;
  }
}
function tell(kind, data) {
  const message = { kind, data };
  channel?.postMessage(message);
  take(message);
}
function connect() {
  clearTimeout(watchdog);
  source?.close();
  if (document.hidden && channel && !others.size && document.wasDiscarded) return;
  const query = new URLSearchParams(shown().map((one) => ["view", one]));
  source = new EventSource(`${base}/live?${query}`);
  const mine = source;
  const expect = (ms) => { clearTimeout(watchdog); watchdog = setTimeout(() => fail(mine), ms); };
  expect(CONNECT_MS);
  source.addEventListener("hello", (event) => { retryMs = 500; expect(SILENT_MS); tell("hello", JSON.parse(event.data)); });
  source.addEventListener("patch", (event) => { expect(SILENT_MS); tell("patch", JSON.parse(event.data)); });
  source.addEventListener("beat", () => expect(SILENT_MS));
  // The server ends a stream after a while; the next one renews the cookie.
  source.addEventListener("again", () => { if (mine === source) connect(); });
  source.onerror = () => fail(mine);
}
// It never gives up: a phone that comes back after a night finds its page up to date.
function fail(which) {
  if (which !== source) return;
  source.close();
  source = null;
  tell("lost");
  clearTimeout(watchdog);
  watchdog = setTimeout(async () => {
    if (await signedOut()) return tell("gone");
    connect();
  }, retryMs);
  retryMs = Math.min(retryMs * 2, 5000);
}
async function signedOut() {
  try { return (await fetch(`${base}/v1/me`, { headers: { accept: "application/json" } })).status === 401; }
  catch { return false; }
}
function lead() { isLeader = true; connect(); }
function stopLeading() {
  isLeader = false;
  clearTimeout(watchdog);
  source?.close();
  source = null;
  release?.();
  release = null;
}
function seek() {
  if (!navigator.locks || !channel) return lead();
  navigator.locks.request("windlass", () => new Promise((done) => { release = done; lead(); })).catch(() => lead());
}
if (channel) {
  channel.onmessage = ({ data: message }) => {
    if (message.kind === "show") {
      const known = others.get(message.tab)?.view;
      others.set(message.tab, { view: message.view, at: Date.now() });
      if (isLeader && (known !== message.view || message.again)) connect();
    } else if (message.kind === "bye") {
      others.delete(message.tab);
    } else if (message.kind === "who") {
      announce(false);
    } else {
      take(message);
    }
  };
  setInterval(() => { if (!isLeader) announce(false); }, 10_000);
}
function announce(again) { channel?.postMessage({ kind: "show", tab, view, again }); }
// Whoever comes back asks for everything at once: what happened meanwhile was told to nobody.
function wake() {
  if (isLeader) connect();
  else announce(true);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });
addEventListener("online", wake);
addEventListener("offline", () => { if (source) fail(source); else if (isLeader) tell("lost"); });
addEventListener("pageshow", (event) => { if (event.persisted) { seek(); announce(true); } });
document.addEventListener("freeze", stopLeading);
document.addEventListener("resume", () => { seek(); announce(true); });
addEventListener("pagehide", () => { channel?.postMessage({ kind: "bye", tab }); stopLeading(); });

// Requests. Every change is JSON with a header that only this script adds.
async function request(method, path, data) {
  const headers = { "x-windlass": "1", accept: "application/json" };
  if (data !== undefined) headers["content-type"] = "application/json";
  const answer = await fetch(path.startsWith(`${base}/`) ? path : base + path, { method, headers, body: data === undefined ? undefined : JSON.stringify(data), keepalive: method === "PUT" });
  if (answer.status === 401) { location.href = `${base}/login`; throw new Error("Signed out"); }
  const text = await answer.text();
  let said = null;
  try { said = text ? JSON.parse(text) : null; } catch { said = null; }
  if (!answer.ok) {
    const error = new Error(said?.detail || said?.title || `The server said ${answer.status}`);
    throw Object.assign(error, { kind: said?.type?.split(":").pop() });
  }
  return said;
}
const post = (path, data = {}) => request("POST", path, data);
async function during(button, work) {
  if (button) button.disabled = true;
  try { return await work(); }
  catch (error) { say(error instanceof TypeError ? "The server cannot be reached." : error.message); }
  finally { if (button) button.disabled = false; }
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-post]");
  if (button) {
    return void during(button, async () => {
      const data = JSON.parse(button.dataset.body || "{}");
      const said = await request(button.dataset.method ?? "POST", button.dataset.post, data ?? undefined);
      if (button.dataset.then) location.href = button.dataset.then;
      else if (said?.message) say(said.message);
      else if (said?.blocks) say(words(said.blocks));
    });
  }
  const copy = event.target.closest("[data-copy]");
  if (copy) return void navigator.clipboard?.writeText(copy.dataset.copy).then(() => say("Copied"), () => say("The browser does not allow it."));
  const toggle = event.target.closest("[data-toggle-side]");
  if (toggle) $(".session")?.classList.toggle("show-side");
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.change) {
    event.preventDefault();
    return void during($("button", form), () => request("PATCH", form.dataset.change, { text: form.elements.text.value }));
  }
  if (!form.dataset.answer) return;
  event.preventDefault();
  const text = form.elements.text.value.trim();
  const deny = "deny" in form.dataset;
  if (!text && !deny) return;
  const answer = deny ? (text ? `Deny: ${text}` : "Deny") : text;
  during($("button", form), async () => {
    await post(`/v1/questions/${form.dataset.answer}/answer`, { answer });
    form.reset();
  });
});

// The answer to a slash command, as every surface draws it: words, headings, fields and tables. All of it is text.
const make = (tag, properties = {}, children = []) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
function words(blocks) { return blocks.map((block) => block.text ?? "").join(" ").trim() || "Done"; }
function drawBlock(block) {
  const cells = (row, tag) => row.map((text) => make(tag, { textContent: text }));
  const rows = (all) => all.map((row) => make("tr", {}, cells(row, "td")));
  switch (block.block) {
    case "heading": return make("h3", { textContent: block.text });
    case "fields": return make("dl", { className: "facts" }, block.fields.flatMap((one) => [make("dt", { textContent: one.name }), make("dd", { textContent: one.value })]));
    case "table": return make("table", {}, [make("thead", {}, [make("tr", {}, cells(block.headings, "th"))]), make("tbody", {}, rows(block.rows))]);
    default: return make("p", { textContent: block.text ?? "" });
  }
}

// Comments on lines of a diff: gathered, then sent as one message.
const review = $("[data-review]");
if (review) {
  const comments = [];
  const bar = document.createElement("div");
  bar.className = "review-bar";
  bar.hidden = true;
  const count = document.createElement("span");
  const send = document.createElement("button");
  send.className = "primary";
  send.type = "button";
  send.textContent = "Send";
  bar.append(count, send);
  review.after(bar);
  const draw = () => {
    bar.hidden = !comments.length;
    count.textContent = comments.length === 1 ? "1 comment" : `${comments.length} comments`;
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-comment]");
    if (!button) return;
    const row = button.closest("tr");
    if (row.nextElementSibling?.classList.contains("comment-row")) return void $("textarea", row.nextElementSibling).focus();
    const place = document.createElement("tr");
    place.className = "comment-row";
    place.innerHTML = `<td colspan="3"><div class="comment-box"><textarea aria-label="Comment"></textarea><div><button class="primary small" type="button">Add comment</button><button class="small" type="button">Cancel</button></div></div></td>`;
    row.after(place);
    const [add, cancel] = all("button", place);
    const field = $("textarea", place);
    field.focus();
    cancel.onclick = () => place.remove();
    add.onclick = () => {
      const text = field.value.trim();
      if (!text) return;
      const { path, line, text: quoted } = button.dataset;
      comments.push({ path, line, quoted, text });
      place.replaceChildren(Object.assign(document.createElement("td"), { colSpan: 3, textContent: `You: ${text}` }));
      draw();
    };
  });
  send.onclick = () => during(send, async () => {
    const text = comments.map((one) => `${one.path}:${one.line}\n> ${one.quoted}\n${one.text}`).join("\n\n");
    const task = `/v1/tasks/${review.dataset.review}`;
    try {
      await post(`${task}/steer`, { text });
      say("Sent. The agent reads it before its next step.");
    } catch (error) {
      // A task that has ended is continued by another one.
      if (error.kind !== "task-ended") throw error;
      await post(`${task}/follow-ups`, { text });
      say("Sent. Another task continues this one with it.");
    }
    comments.length = 0;
    draw();
  });
}

// Keys, when nothing is being written.
const KEYS = {
  "/": ["Write a message", () => $("#message")?.focus()],
  q: ["Go to the next question", () => $(".question button")?.focus()],
  i: ["Inbox", () => { location.href = `${base}/inbox`; }],
  t: ["Tasks", () => { location.href = `${base}/tasks`; }],
  s: ["Sessions", () => { location.href = `${base}/`; }],
  k: ["Previous message of yours", () => jump(-1)],
  j: ["Next message of yours", () => jump(1)],
  "?": ["These keys", help],
};
function jump(by) {
  const said = all("[data-user]");
  const here = said.map((one) => one.getBoundingClientRect().top - 90);
  const index = by < 0 ? here.findLastIndex((top) => top < -4) : here.findIndex((top) => top > 4);
  said[index]?.scrollIntoView({ block: "start" });
}
function help() {
  let dialog = $("#keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    const heading = Object.assign(document.createElement("h2"), { textContent: "Keys" });
    const list = document.createElement("dl");
    for (const [key, [words]] of Object.entries(KEYS)) {
      const name = document.createElement("dt");
      name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
      list.append(name, Object.assign(document.createElement("dd"), { textContent: words }));
    }
    const close = Object.assign(document.createElement("button"), { type: "button", textContent: "Close", onclick: () => dialog.close() });
    dialog.append(heading, list, close);
    body.append(dialog);
  }
  dialog.showModal();
}
document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input, textarea, select, [contenteditable], dialog");
  if (writes || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = KEYS[event.key];
  if (!key) return;
  event.preventDefault();
  key[1]();
});

localTimes(document);
countSeconds();
showCount();
if ($("#log") && !location.hash) scrollTo(0, document.documentElement.scrollHeight);
seek();
channel?.postMessage({ kind: "who" });
announce(false);
