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
// Without a connection nobody knows whether it still lasts.
setInterval(() => { if (!document.hidden && !lostSince && $("[data-since]")) countSeconds(); }, 1000);

// What the page knows about its connection.
let lostSince = null, staleSince = null, isLeftOut = false;
function banner() {
  const line = $("#banner");
  const text = reloadWanted ? "Windlass was updated. "
    : lostSince ? `Disconnected since ${clock.format(lostSince)}. Trying again …`
    : isLeftOut ? `This page is not kept up to date: more than ${MAX_VIEWS} pages are open. Close some, or load it again. `
    : staleSince ? `Not up to date since ${clock.format(staleSince)}: the server could not draw this page. Trying again …` : "";
  body.toggleAttribute("data-lost", Boolean(lostSince));
  if (line.dataset.text === text) return;
  line.dataset.text = text;
  line.textContent = text;
  if (reloadWanted) {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "Load the page again";
    line.append(link);
  }
  measureBanner();
}
// What sticks to the top sticks below it.
function measureBanner() { document.documentElement.style.setProperty("--banner", `${$("#banner").offsetHeight}px`); }
addEventListener("resize", measureBanner);
let reloadWanted = false;
let sayTimer;
// `path` leads to what it is about.
function say(text, path) {
  $("#said").textContent = text;
  if (path) $("#said").append(" ", Object.assign(document.createElement("a"), { href: base + path, textContent: "See it" }));
  clearTimeout(sayTimer);
  sayTimer = setTimeout(() => { $("#said").textContent = ""; }, 6000);
}

// Patches: elements by id, and the order of lists.
function applyPatch(patch) {
  if ($("[data-failed]")) return location.reload();
  const wasAtEnd = isAtEnd();
  const place = focusedPlace();
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
    if (old) {
      keepState(old, element);
      const scrolled = scrollPlaces(old);
      old.replaceWith(element);
      restoreScroll(element, scrolled);
    }
    else { fresh.set(id, element); added = true; }
  }
  for (const [list, ids] of Object.entries(patch.order ?? {})) {
    const parent = document.getElementById(list);
    if (!parent) continue;
    const wanted = new Set(ids);
    for (const child of [...parent.children]) if (!wanted.has(child.id)) child.remove();
    let next = parent.firstElementChild;
    for (const id of ids) {
      const element = document.getElementById(id) ?? fresh.get(id);
      if (!element) continue;
      if (element === next) next = next.nextElementSibling;
      else parent.insertBefore(element, next);
    }
  }
  // A reply that is complete is read out once; one that is being written would never end.
  const replies = [...fresh.values()].map((one) => one.isConnected && $("article.reply > .md", one)).filter(Boolean);
  if (replies.length) $("#last-reply").textContent = replies.at(-1).textContent.slice(0, 2000);
  document.dispatchEvent(new Event("patched"));
  restoreFocus(place);
  if (patch.title !== undefined) title = patch.title;
  showCount();
  if ($("#log")) {
    if (wasAtEnd) scrollTo(0, document.documentElement.scrollHeight);
    else if (added) showBelow();
  }
}
// What the reader has opened and written in what is replaced.
function keepState(old, element) {
  for (const open of all("details[id]", old)) {
    const same = element.querySelector(`#${CSS.escape(open.id)}`);
    if (same) same.open = open.open;
  }
  for (const field of all("input[id], textarea[id], select[id]", old)) {
    const same = element.querySelector(`#${CSS.escape(field.id)}`);
    // What nobody has written into follows what is true now.
    if (!same || field.value === field.defaultValue) continue;
    same.value = field.value;
    if (field.form?.dataset.was !== undefined) same.form.dataset.was = field.form.dataset.was;
  }
}
// How far the reader has scrolled inside what is replaced. What shows its end counts from there, and from its top as soon as
// the reader has left the end.
const SCROLLED = "pre, .scroll, .output";
const above = (one) => one.scrollHeight - one.clientHeight;
function scrollPlaces(old) {
  return all(SCROLLED, old).map((one) => [one.scrollLeft, one.scrollTop < 0 ? one.scrollTop + above(one) : one.scrollTop, one.scrollTop < 0]);
}
function restoreScroll(element, places) {
  all(SCROLLED, element).forEach((one, at) => {
    const [left, top, isFromEnd] = places[at] ?? [0, 0];
    if (left) one.scrollLeft = left;
    if (top || isFromEnd) one.scrollTop = isFromEnd ? top - above(one) : top;
  });
}
// The focus stays on what does and says the same, wherever it is now. Where nothing does, it stays in the part, on no
// button: whoever presses Enter then answers nothing that they have not seen.
const FOCUSABLE = "a[href], button, input, textarea, select, summary, [tabindex]";
const does = (one) => JSON.stringify([one.tagName, one.id, one.getAttribute("href"), one.name, { ...one.dataset }]);
const says = (one) => one.textContent;
// A button is off while its request runs, and has no focus then.
let pressed = null;
function focusedPlace() {
  const focused = document.activeElement === body ? pressed : document.activeElement;
  const part = focused?.closest("[data-h]");
  if (!part) return null;
  const place = { focused, part: part.id, does: does(focused), says: says(focused) };
  place.nth = all(FOCUSABLE, part).filter((one) => isSame(one, place)).indexOf(focused);
  if (focused.matches("textarea, input[type=text]")) place.selection = [focused.selectionStart, focused.selectionEnd];
  return place;
}
const isSame = (one, place) => does(one) === place.does && says(one) === place.says;
function restoreFocus(place) {
  if (!place || document.activeElement === place.focused || document.activeElement !== body) return;
  const part = document.getElementById(place.part);
  if (!part) return;
  const near = all(FOCUSABLE, part);
  const same = near.filter((one) => isSame(one, place));
  const there = [place.focused].find((one) => one.isConnected) ?? same[place.nth] ?? same[0]
    ?? near.find((one) => does(one) === place.does) ?? part;
  if (there === part) part.tabIndex = -1;
  there.focus({ preventScroll: true });
  if (place.selection && there !== part) there.setSelectionRange(...place.selection);
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
// Whoever reads the end keeps it in sight when the window changes, as a phone's does with its keyboard.
let readsEnd = true;
const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
addEventListener("scroll", () => {
  readsEnd = isAtEnd();
  if (readsEnd) $(".below")?.remove();
}, { passive: true });
addEventListener("resize", () => { if (readsEnd && $("#log")) scrollTo(0, document.documentElement.scrollHeight); });

// The number of open questions, in the title and in the icon.
let title = pageTitle.replace(/ · Windlass$/, "");
let known = null;
// The notifications of this tab, by the question of each.
const notices = new Map();
function showCount() {
  const open = JSON.parse($("[data-open]")?.dataset.open ?? "[]");
  const count = Number($("[data-count]")?.dataset.count ?? 0);
  document.title = `${count ? `(${count}) ` : ""}${title} · Windlass`;
  const icon = $("#icon");
  const state = $("[data-state]")?.dataset.state;
  icon.dataset.plain ??= icon.href;
  const wanted = `${count} ${state}`;
  if (icon.dataset.shown !== wanted) icon.href = count ? badgeIcon(count) : STATES[state] ? stateIcon(state) : icon.dataset.plain;
  icon.dataset.shown = wanted;
  const ids = open.map(([id]) => id);
  const fresh = known ? open.filter(([id]) => !known.includes(id)) : [];
  known = ids;
  for (const id of notices.keys()) if (!ids.includes(id)) closeNotice(id);
  if (!fresh.length) return;
  $("#news").textContent = `A question waits: ${fresh.map(([, goal]) => goal).join("; ")}`;
  fresh.forEach(notify);
}
// How the task of a page stands, as a dot; a number of questions comes before it.
const STATES = { info: "#2f8fd0", good: "#1c8a4a", warn: "#b04a00", bad: "#c0392b" };
function stateIcon(state) { return drawnIcon(`<circle cx="18" cy="18" r="6" fill="${STATES[state]}" stroke="#fff" stroke-width="1.5"/>`); }
function badgeIcon(count) {
  const words = count > 99 ? "99+" : String(count);
  return drawnIcon(`<rect x="${words.length > 1 ? 2 : 8}" y="8" width="${words.length > 1 ? 22 : 16}" height="16" rx="5" fill="#b04a00"/><text x="${words.length > 1 ? 13 : 16}" y="21" font-family="sans-serif" font-weight="700" font-size="${words.length > 2 ? 11 : 14}" text-anchor="middle" fill="#fff">${words}</text>`);
}
function drawnIcon(badge) {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><g fill="none" stroke="#1d5f8a" stroke-width="2.4" stroke-linecap="round"><circle cx="12" cy="12" r="5"/><path d="M12 2v5M12 17v5M2 12h5M17 12h5"/></g>${badge}</svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
// Only when no page is seen: whoever looks at one sees the question. It goes when its question is answered, wherever, or
// when a page is seen.
function notify([id, body]) {
  const wanted = store("notify") === "1" && "Notification" in window && Notification.permission === "granted";
  if (!wanted || !isLeader || anyInSight()) return;
  const notice = new Notification("Windlass waits for you", { body, tag: `windlass-${id}` });
  notice.onclick = () => { focus(); location.href = `${base}/inbox`; };
  notices.set(id, notice);
}
function closeNotice(id) {
  notices.get(id)?.close();
  notices.delete(id);
}
function closeNotices() { [...notices.keys()].forEach(closeNotice); }
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
// The server keeps so many pages of a browser up to date.
const MAX_VIEWS = 20;
function shown() {
  const now = Date.now();
  for (const [id, one] of others) if (now - one.at > 30_000) others.delete(id);
  const views = [...new Set([view, ...[...others.values()].map((one) => one.view)])];
  tell("shown", views.slice(0, MAX_VIEWS));
  return views.slice(0, MAX_VIEWS);
}
function take(message) {
  if (message.kind === "hello") {
    lostSince = staleSince = null;
    reloadWanted = message.data.version !== version;
    banner();
  } else if (message.kind === "shown") {
    isLeftOut = !message.data.includes(view);
    banner();
  } else if (message.kind === "lost") {
    lostSince ??= new Date();
    banner();
  } else if (message.kind === "patch" && message.data.view === view) {
    applyPatch(message.data);
  } else if (["stale", "fresh"].includes(message.kind) && message.data.view === view) {
    staleSince = message.kind === "stale" ? staleSince ?? new Date() : null;
    banner();
  } else if (message.kind === "gone") {
    signInAgain();
  }
}
// The login page leads back to this one.
function signInAgain() {
  const here = location.pathname.slice(base.length) + location.search + location.hash;
  location.href = `${base}/login?to=${encodeURIComponent(here)}`;
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
  for (const kind of ["stale", "fresh"]) source.addEventListener(kind, (event) => { expect(SILENT_MS); tell(kind, JSON.parse(event.data)); });
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
  try { return (await fetch(`${base}/v1/me`, { headers: { accept: "application/json" }, signal: AbortSignal.timeout(CONNECT_MS) })).status === 401; }
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
      others.set(message.tab, { view: message.view, at: Date.now(), seen: message.seen });
      if (message.seen) closeNotices();
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
function announce(again) { channel?.postMessage({ kind: "show", tab, view, again, seen: !document.hidden }); }
function anyInSight() { return !document.hidden || [...others.values()].some((one) => one.seen && Date.now() - one.at < 15_000); }
// Whoever comes back asks for everything at once: what happened meanwhile was told to nobody.
function wake() {
  if (isLeader) connect();
  else announce(true);
}
document.addEventListener("visibilitychange", () => { if (document.hidden) announce(false); else { closeNotices(); wake(); } });
addEventListener("online", wake);
addEventListener("offline", () => { if (source) fail(source); else if (isLeader) tell("lost"); });
addEventListener("pageshow", (event) => { if (event.persisted) { seek(); announce(true); } });
document.addEventListener("freeze", stopLeading);
document.addEventListener("resume", () => { seek(); announce(true); });
addEventListener("pagehide", () => { channel?.postMessage({ kind: "bye", tab }); stopLeading(); });

// Requests. Every change is JSON with a header that only this script adds.
// `sender` is what was pressed or sent: pressed again because the answer was lost, the change has one effect.
async function request(method, path, data, sender) {
  const headers = { "x-windlass": "1", accept: "application/json" };
  const body = data === undefined ? undefined : JSON.stringify(data);
  if (body) headers["content-type"] = "application/json";
  if (sender) headers["idempotency-key"] = keyOf(sender, `${method} ${path} ${body}`);
  const answer = await fetch(path.startsWith(`${base}/`) ? path : base + path, { method, headers, body, keepalive: method === "PUT" });
  const text = await answer.text();
  if (sender) keys.delete(sender);
  if (answer.status === 401) { signInAgain(); throw new Error("Signed out"); }
  let said = null;
  try { said = text ? JSON.parse(text) : null; } catch { said = null; }
  if (!answer.ok) {
    const error = new Error(said?.detail || said?.title || `The server said ${answer.status}`);
    throw Object.assign(error, { kind: said?.type?.split(":").pop() });
  }
  return said;
}
// The keys of changes that no answer has come to, each for one request.
const keys = new WeakMap();
function keyOf(sender, sent) {
  if (keys.get(sender)?.sent !== sent) {
    // `randomUUID` is only there with TLS or on the machine itself.
    const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
    keys.set(sender, { sent, key: bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("") });
  }
  return keys.get(sender).key;
}
const post = (path, data = {}, sender) => request("POST", path, data, sender);
async function during(button, work) {
  // What went wrong before is over as soon as it is tried again.
  say("");
  if (button && button === document.activeElement) pressed = button;
  if (button) button.disabled = true;
  try { return await work(); }
  catch (error) { say(error instanceof TypeError ? "The server cannot be reached." : error.message); }
  finally {
    if (button) button.disabled = false;
    if (pressed && pressed === button) {
      if (document.activeElement === body) button.focus({ preventScroll: true });
      pressed = null;
    }
  }
}
document.addEventListener("click", (event) => {
  // The panel of the mode closes as a menu does.
  for (const panel of all("details.mode[open]")) if (!panel.contains(event.target)) panel.open = false;
  const button = event.target.closest("[data-post]");
  if (button) {
    return void during(button, async () => {
      const data = JSON.parse(button.dataset.body || "{}");
      const said = await request(button.dataset.method ?? "POST", button.dataset.post, data ?? undefined, button);
      if (button.dataset.then) location.href = button.dataset.then;
      else if (said?.message) say(said.message);
      else if (said?.blocks) say(words(said.blocks));
    });
  }
  const copy = event.target.closest("[data-copy], [data-copy-from]");
  if (copy) {
    // A page of another machine that is not encrypted has no clipboard.
    const text = copy.dataset.copy ?? $(copy.dataset.copyFrom).textContent;
    const copied = navigator.clipboard?.writeText(text) ?? Promise.reject();
    return void copied.then(() => say("Copied"), () => say("The browser does not allow it."));
  }
  const toggle = event.target.closest("[data-toggle-side]");
  if (toggle) {
    const open = $(".session").classList.toggle("show-side");
    request("PUT", `/drafts/${toggle.dataset.toggleSide}`, { text: open ? "open" : "" }).catch(() => {});
  }
});
document.addEventListener("keydown", (event) => {
  const panel = event.key === "Escape" && $("details.mode[open]");
  if (!panel) return;
  panel.open = false;
  $("summary", panel).focus();
});
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.change) {
    event.preventDefault();
    return void during($("button", form), () => saveChange(form));
  }
  if (form.dataset.reason) {
    event.preventDefault();
    const reason = form.elements.text.value.trim();
    return void (reason && during($("button", form), () => post(form.dataset.reason, { reason }, form)));
  }
  if (!form.dataset.answer) return;
  event.preventDefault();
  const text = form.elements.text.value.trim();
  const deny = "deny" in form.dataset;
  if (!text && !deny) return;
  const answer = deny ? (text ? `Deny: ${text}` : "Deny") : text;
  during($("button", form), async () => {
    await post(`/v1/questions/${form.dataset.answer}/answer`, { answer }, form);
    form.reset();
  });
});

// What somebody else has changed meanwhile is written over only by whoever has seen it.
async function saveChange(form) {
  const { text } = form.elements;
  try {
    await request("PATCH", form.dataset.change, { text: text.value, was: form.dataset.was }, form);
  } catch (error) {
    if (error.kind !== "message-changed") throw error;
    const [, list, id] = form.dataset.change.match(/(.*)\/(.*)/);
    const { messages } = await request("GET", list);
    const now = messages.find((one) => one.message_id === id)?.text ?? "";
    form.dataset.was = now;
    $(".conflict", form)?.remove();
    form.prepend(make("p", { className: "note warn conflict", textContent: `Somebody has changed it meanwhile to “${now}”. Save again to replace that.` }));
  }
}

// The answer to a slash command, as every surface draws it: words, headings, fields and tables. All of it is text.
const make = (tag, properties = {}, children = []) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
// Characters that hide, or that reorder what stands beside them, are shown as the server shows them.
const HIDDEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const visible = (text) => text.replace(HIDDEN, (one) => `\\u{${one.codePointAt(0).toString(16).toUpperCase()}}`);
// What stands between two backticks is code, as the server draws it; one backtick alone is a letter.
function withCode(text) {
  const parts = visible(text).split("`");
  return parts.map((part, at) => (at % 2 === 0 ? part : at + 1 < parts.length ? make("code", { textContent: part }) : `\`${part}`));
}
function words(blocks) { return blocks.map((block) => block.text ?? "").join(" ").trim() || "Done"; }
function drawBlock(block) {
  const cells = (row, tag) => row.map((text) => make(tag, {}, withCode(text)));
  const rows = (all) => all.map((row) => make("tr", {}, cells(row, "td")));
  switch (block.block) {
    case "heading": return make("h3", { textContent: visible(block.text) });
    case "fields": return make("dl", { className: "facts" }, block.fields.flatMap((one) => [make("dt", {}, withCode(one.name)), make("dd", {}, withCode(one.value))]));
    case "table": return make("table", {}, [make("thead", {}, [make("tr", {}, cells(block.headings, "th"))]), make("tbody", {}, rows(block.rows))]);
    default: return make("p", {}, withCode(block.text ?? ""));
  }
}

localTimes(document);
countSeconds();
showCount();
// Where the places and tabs do not fit, the current one is in sight.
function showCurrent() {
  for (const one of all(".places [aria-current], .tabs [aria-current]")) {
    const bar = one.closest(".places ul, .tabs");
    const [at, room] = [one.getBoundingClientRect(), bar.getBoundingClientRect()];
    bar.scrollLeft += at.left - room.left - (room.width - at.width) / 2;
  }
}
addEventListener("resize", showCurrent);
if ($("#log") && !location.hash) scrollTo(0, document.documentElement.scrollHeight);
// Whoever looks at a page need not be told elsewhere. Repeated often enough never to be stale.
function saySeen() { if (!document.hidden) request("PUT", "/seen", {}).catch(() => {}); }
// The first picture comes first. A page that is not seen has none.
function afterPaint(work) {
  let isDone = false;
  const once = () => { if (!isDone) { isDone = true; work(); } };
  if (document.hidden) return once();
  requestAnimationFrame(() => setTimeout(once));
  setTimeout(once, 300);
}
afterPaint(() => {
  showCurrent();
  readsEnd = isAtEnd();
  seek();
  channel?.postMessage({ kind: "who" });
  announce(false);
  if (body.dataset.tellsOwner === undefined) return;
  saySeen();
  setInterval(saySeen, 20_000);
  document.addEventListener("visibilitychange", saySeen);
});
