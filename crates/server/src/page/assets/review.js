// Comments on lines of a diff: gathered, kept as a draft on the server, then sent as one message. It uses the helpers of
// app.js.
"use strict";

const review = $("[data-review]");
if (review) {
  const task = review.dataset.review;
  // Each has the path, the line, what the line says, the comment, and whether it was added or is still being written.
  const comments = readDraft(review.dataset.comments);
  const rows = new Map();
  const lost = make("div", { className: "lost-comments" });
  const count = make("span");
  const send = make("button", { className: "primary", type: "button", textContent: "Send" });
  const bar = make("div", { className: "review-bar" }, [count, send]);
  review.after(lost, bar);

  function readDraft(text) {
    try { return JSON.parse(text || "[]").filter((one) => one && typeof one.text === "string"); } catch { return []; }
  }
  const added = () => comments.filter((one) => one.added);
  const draw = () => {
    const ready = added().length;
    bar.hidden = !ready;
    count.textContent = ready === 1 ? "1 comment" : `${ready} comments`;
  };
  // Kept on the server: neither a reload nor another device loses what was written.
  let timer, kept = JSON.stringify(comments);
  const save = () => {
    clearTimeout(timer);
    const now = JSON.stringify(comments);
    if (now === kept) return;
    kept = now;
    request("PUT", `/drafts/review-${task}`, { text: comments.length ? now : "" })
      .catch((error) => { kept = null; say(`Your comments are not kept on the server: ${error.message}`); });
  };
  const saveSoon = () => { clearTimeout(timer); timer = setTimeout(save, 600); };
  addEventListener("pagehide", save);

  const drop = (one) => {
    comments.splice(comments.indexOf(one), 1);
    rows.get(one)?.remove();
    rows.delete(one);
    place();
    save();
  };
  const fill = (one, box) => {
    const button = (textContent, onclick, kind = "") => make("button", { type: "button", className: `${kind} small`, textContent, onclick });
    if (one.added) {
      const edit = () => { one.added = false; fill(one, box); $("textarea", box).focus(); draw(); save(); };
      const about = make("p", { textContent: `You: ${one.text}` });
      return box.replaceChildren(about, make("div", {}, [button("Edit", edit), button("Remove", () => drop(one))]));
    }
    const field = make("textarea", { value: one.text, ariaLabel: "Comment" });
    field.oninput = () => { one.text = field.value; saveSoon(); };
    const add = () => {
      if (!field.value.trim()) return;
      Object.assign(one, { text: field.value.trim(), added: true });
      fill(one, box);
      draw();
      save();
    };
    box.replaceChildren(field, make("div", {}, [button("Add comment", add, "primary"), button("Cancel", () => drop(one))]));
  };
  const rowOf = (one) => {
    if (!rows.has(one)) {
      const box = make("div", { className: "comment-box" });
      fill(one, box);
      rows.set(one, make("tr", { className: "comment-row" }, [make("td", { colSpan: 3 }, [box])]));
    }
    return rows.get(one);
  };
  // The line that a comment is on now: an edit may have moved it, or removed it.
  const lineOf = (one) => {
    const same = all("[data-comment]", review).filter(({ dataset }) => dataset.path === one.path && dataset.text === one.quoted);
    const distance = ({ dataset }) => Math.abs(dataset.line - one.line);
    return same.sort((left, right) => distance(left) - distance(right))[0];
  };
  const place = () => {
    for (const one of comments) {
      const [row, button] = [rowOf(one), lineOf(one)];
      if (button && review.contains(row)) continue;
      if (button) {
        one.line = button.dataset.line;
        button.closest("tr").after(row);
      } else if (!lost.contains(row)) {
        lost.append(make("table", {}, [make("caption", { textContent: `${one.path}:${one.line} is not among the lines that are shown. It said: ${one.quoted}` }), row]));
      }
    }
    for (const table of all("table", lost)) if (!$("tr", table)) table.remove();
    draw();
  };
  document.addEventListener("patched", place);
  place();

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-comment]");
    if (!button) return;
    const { path, line, text: quoted } = button.dataset;
    const open = comments.find((one) => !one.added && lineOf(one) === button);
    const one = open ?? { path, line, quoted, text: "", added: false };
    if (!open) comments.push(one);
    place();
    $("textarea", rowOf(one)).focus();
  });
  send.onclick = () => during(send, async () => {
    const sent = added();
    const text = sent.map((one) => `${one.path}:${one.line}\n> ${one.quoted}\n${one.text}`).join("\n\n");
    try {
      await post(`/v1/tasks/${task}/steer`, { text }, send);
      say("Sent. The agent reads it before its next step.");
    } catch (error) {
      // A task that has ended is continued by another one.
      if (error.kind !== "task-ended") throw error;
      const { task_id: next } = await post(`/v1/tasks/${task}/follow-ups`, { text }, send);
      say("Sent. Another task continues this one with it.", `/tasks/${next}`);
    }
    sent.forEach(drop);
  });
}
