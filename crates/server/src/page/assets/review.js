// Comments on lines of a diff: gathered, then sent as one message. It uses the helpers of app.js.
"use strict";

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
