"use strict";
// Hands in the code of a login link, once, and takes it out of the address at once.
const says = document.getElementById("says");

async function signIn(code) {
  says.textContent = "Signing in …";
  let answer;
  try {
    answer = await fetch("v1/login", {
      method: "POST",
      headers: { "content-type": "application/json", "x-windlass": "1" },
      body: JSON.stringify({ code }),
    });
  } catch {
    says.textContent = "The server does not answer. Is `windlass serve` running?";
    return;
  }
  if (answer.ok) {
    location.replace("./");
    return;
  }
  const problem = await answer.json().catch(() => ({}));
  says.textContent = problem.detail || "That did not work. `windlass open` prints a new link.";
}

document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const field = document.getElementById("code");
  const code = field.value.trim().replace(/^.*#/, "");
  field.value = "";
  signIn(code);
});

const code = location.hash.slice(1);
if (code) {
  history.replaceState(null, "", location.pathname);
  signIn(code);
}
