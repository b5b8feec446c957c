"use strict";
// Signs a browser in: with the code of a link, which is taken out of the address at once, or with what somebody pastes.
const line = document.getElementById("says");
// A sentence; what stands between backticks is code.
function say(text, isProblem = false) {
  const parts = (text.charAt(0).toUpperCase() + text.slice(1)).split("`");
  line.replaceChildren(...parts.map((part, at) => at % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part));
  line.classList.toggle("t-bad", isProblem);
}
const query = new URLSearchParams(location.search);
// The path under which a proxy shows the server.
const base = location.pathname.replace(/\/login$/, "");
const CODE = /^[0-9a-f]{64}$/;

// Where it leads after signing in: a page of this server, whatever the address asks for.
function target() {
  const first = new URL(`${base}/`, location.origin);
  const to = query.get("to") ?? "";
  // To a browser a backslash is a slash, two slashes begin another server, and control characters are nothing.
  if (!to.startsWith("/") || /^\/\/|[\\\x00-\x1f]/.test(to)) return first.href;
  const page = new URL(base + to, location.origin);
  const isOurs = page.origin === first.origin && page.pathname.startsWith(first.pathname) && !page.pathname.includes("//");
  if (!isOurs) return first.href;
  // A browser keeps the fragment of the address that led here.
  page.hash ||= location.hash;
  return page.href;
}

async function signIn(code) {
  say("Signing in …");
  let answer;
  try {
    answer = await fetch("v1/login", {
      method: "POST",
      headers: { "content-type": "application/json", "x-windlass": "1" },
      body: JSON.stringify({ code }),
    });
  } catch {
    say("The server does not answer. Is `windlass serve` running?", true);
    return;
  }
  if (answer.ok) {
    location.replace(target());
    return;
  }
  const problem = await answer.json().catch(() => ({}));
  say(problem.detail || "That did not work. `windlass open` prints a new link.", true);
}

// Whoever follows a link of another site is signed in and does not look so: browsers send the cookie only from our pages.
async function enterIfSignedIn() {
  const answer = await fetch("v1/me").catch(() => null);
  if (answer?.ok) location.replace(target());
}

function useLink() {
  const code = location.hash.slice(1);
  if (!code || (query.has("to") && !CODE.test(code))) return false;
  history.replaceState(null, "", location.pathname + location.search);
  signIn(code);
  return true;
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.getElementById("code");
  const code = field.value.trim().replace(/^.*#/, "");
  field.value = "";
  signIn(code);
});
// A tab that shows this page already opens a link: nothing is loaded, only the fragment changes.
addEventListener("hashchange", useLink);
if (!useLink() && query.has("to")) {
  enterIfSignedIn();
  // Somebody may sign in beside it.
  document.addEventListener("visibilitychange", () => { if (!document.hidden) enterIfSignedIn(); });
}
