// Where a message is written: drafts, completion, pictures, what waits. It uses the helpers of app.js.
"use strict";

const composer = $("#composer");
if (composer) {
  const message = $("#message");
  const session = composer.dataset.session;
  const grow = () => { message.style.height = "auto"; message.style.height = `${message.scrollHeight}px`; };
  const touch = matchMedia("(pointer: coarse)").matches;
  message.addEventListener("input", () => { grow(); keepDraft(); });
  message.addEventListener("keydown", (event) => {
    if (event.isComposing || event.key !== "Enter" || event.shiftKey || event.altKey || touch) return;
    event.preventDefault();
    composer.requestSubmit();
  });
  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = message.value.trim();
    if (!text) {
      if (attached.length) say("Write something with it.");
      return;
    }
    const pictures = attached.map(({ name, data }) => ({ name, data }));
    during($("button[type=submit]", composer), async () => {
      const now = event.submitter?.name === "now";
      if (session && isCommand(text)) {
        const reply = await post(`/v1/sessions/${session}/commands`, { line: text }, composer);
        showReply(reply.blocks);
        clear();
      } else if (session) {
        await sendMessage({ text, pictures }, now);
        showReply(null);
        clear();
        if (now) say("Sent. The agent reads it before its next step.");
        scrollTo({ top: document.documentElement.scrollHeight });
      } else {
        const made = await post("/v1/tasks", { ...goal(text), pictures }, composer);
        clear();
        location.href = `${base}/sessions/${made.session_id}`;
      }
    });
  });
  // Where a message goes is decided once: sent again because its answer was lost, it goes there too, whatever the task
  // does meanwhile.
  let tried = null;
  const sendMessage = async (data, now) => {
    const draft = JSON.stringify([data, now]);
    // While a task works, a message waits for its end, unless it is to be read at once.
    const place = $("[data-busy]") && !now ? "queue" : "messages";
    if (tried?.draft !== draft) tried = { draft, place };
    try {
      await post(`/v1/sessions/${session}/${tried.place}`, data, composer);
    } catch (error) {
      if (!(error instanceof TypeError)) tried = null;
      throw error;
    }
    tried = null;
  };
  // What a slash command answers, until the next message.
  const showReply = (blocks) => {
    const place = $("#reply");
    place.hidden = !blocks?.length;
    place.replaceChildren(...(blocks ?? []).map(drawBlock));
    if (blocks?.length) place.append(make("button", { type: "button", className: "small", textContent: "Close", onclick: () => showReply(null) }));
  };
  const isCommand = (text) => {
    const name = /^\/(\S+)/.exec(text)?.[1];
    return items.some((item) => item.dataset.name === name && item.dataset.skill === undefined);
  };
  const list = $("#completions");
  const items = list ? all("li", list) : [];
  const fitting = () => items.filter((item) => !item.hidden);
  items.forEach((item, at) => { item.id = `completion-${at}`; });
  const select = (item, among = items) => {
    among.forEach((one) => one.setAttribute("aria-selected", String(one === item)));
    item?.scrollIntoView({ block: "nearest" });
    describeList();
  };
  // While a list is open, the field is one that chooses from it.
  const describeList = () => {
    const open = [list, $("#files")].find((one) => one && !one.hidden);
    const chosen = open && all("li", open).find((item) => !item.hidden && item.getAttribute("aria-selected") === "true");
    const states = { role: open && "combobox", "aria-autocomplete": open && "list", "aria-expanded": open && "true", "aria-controls": open?.id, "aria-activedescendant": chosen?.id };
    for (const [name, value] of Object.entries(states)) {
      if (value) message.setAttribute(name, value);
      else message.removeAttribute(name);
    }
  };
  const show = (which, isOpen) => { which.hidden = !isOpen; describeList(); };
  const complete = () => {
    const typed = /^\/(\S*)$/.exec(message.value);
    for (const item of items) item.hidden = !typed || !item.dataset.name.startsWith(typed[1]);
    if (list) list.hidden = !fitting().length;
    select(fitting()[0]);
  };
  const choose = (item) => { message.value = `/${item.dataset.name} `; show(list, false); message.focus(); grow(); keepDraft(); };
  message.addEventListener("input", complete);
  list?.addEventListener("mousedown", (event) => { event.preventDefault(); const item = event.target.closest("li"); if (item) choose(item); });
  message.addEventListener("keydown", (event) => {
    if (!list || list.hidden || event.isComposing) return;
    const shown = fitting();
    const index = shown.findIndex((item) => item.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const exact = message.value === `/${shown[index]?.dataset.name}`;
    if (step) select(shown[(index + step + shown.length) % shown.length]);
    else if (event.key === "Escape") show(list, false);
    else if (event.key === "Tab" || (event.key === "Enter" && !exact)) choose(shown[index]);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  const clear = () => {
    message.value = "";
    attached.length = 0;
    for (const open of [list, $("#files")]) if (open) show(open, false);
    drawAttached();
    grow();
    saveDraft();
  };
  // Pictures: chosen, pasted or dropped; made smaller where the server would not take them.
  const attached = [];
  const PICTURES = 10, PICTURE_BYTES = 250_000, PICTURE_SIDE = 1568;
  const drawAttached = () => {
    const place = $("#attached");
    place.hidden = !attached.length;
    place.replaceChildren(...attached.map((one) => make("span", { className: "chip" }, [
      one.name, make("button", { type: "button", className: "small", textContent: "Remove", onclick: () => { attached.splice(attached.indexOf(one), 1); drawAttached(); } }),
    ])));
  };
  const smaller = async (file) => {
    const bitmap = await createImageBitmap(file);
    const scale = Math.min(1, PICTURE_SIDE / Math.max(bitmap.width, bitmap.height));
    const canvas = make("canvas", { width: Math.max(1, bitmap.width * scale), height: Math.max(1, bitmap.height * scale) });
    canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return new Promise((done) => canvas.toBlob(done, "image/jpeg", 0.85));
  };
  const encode = (blob) => new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.split(",")[1] ?? "");
    reader.onerror = () => fail(new Error("The picture cannot be read."));
    reader.readAsDataURL(blob);
  });
  const attach = (files) => during(null, async () => {
    if ([...files].some((one) => !one.type.startsWith("image/"))) say("Only pictures can be attached.");
    for (const file of [...files].filter((one) => one.type.startsWith("image/"))) {
      if (attached.length >= PICTURES) throw new Error(`At most ${PICTURES} pictures.`);
      const blob = file.size > PICTURE_BYTES ? await smaller(file) : file;
      attached.push({ name: file.name || "pasted picture", data: await encode(blob) });
      drawAttached();
    }
  });
  $("#pictures")?.addEventListener("change", (event) => { attach(event.target.files); event.target.value = ""; });
  message.addEventListener("paste", (event) => { if (event.clipboardData.files.length) { event.preventDefault(); attach(event.clipboardData.files); } });
  // Text that is dropped is the browser's to write.
  const hasFiles = (event) => event.dataTransfer.types.includes("Files");
  composer.addEventListener("dragover", (event) => { if (hasFiles(event)) event.preventDefault(); });
  composer.addEventListener("drop", (event) => { if (hasFiles(event)) { event.preventDefault(); attach(event.dataTransfer.files); } });
  // Files of the session's directory, after an @.
  const files = $("#files");
  let filesTimer;
  const fileWord = () => /(^|\s)@(\S*)$/.exec(message.value.slice(0, message.selectionStart));
  const chooseFile = (name) => {
    const word = fileWord();
    show(files, false);
    if (!word) return;
    const end = message.selectionStart;
    message.setRangeText(`${name}${name.endsWith("/") ? "" : " "}`, end - word[2].length, end, "end");
    grow();
    keepDraft();
    message.focus();
  };
  const findFiles = async () => {
    const word = fileWord();
    if (!word) return show(files, false);
    const found = await request("GET", `/v1/sessions/${session}/files?q=${encodeURIComponent(word[2])}`).catch(() => null);
    if (fileWord()?.[2] !== word[2]) return;
    const names = found?.files ?? [];
    files.replaceChildren(...names.slice(0, 8).map((name, index) => {
      const item = make("li", { id: `file-${index}`, textContent: name });
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(index === 0));
      return item;
    }));
    show(files, names.length > 0);
  };
  if (files) {
    message.addEventListener("input", () => { clearTimeout(filesTimer); filesTimer = setTimeout(findFiles, 120); });
    files.addEventListener("mousedown", (event) => { event.preventDefault(); const item = event.target.closest("li"); if (item) chooseFile(item.textContent); });
    message.addEventListener("keydown", (event) => {
      if (files.hidden || event.isComposing) return;
      const options = all("li", files);
      const index = options.findIndex((item) => item.getAttribute("aria-selected") === "true");
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) select(options[(index + step + options.length) % options.length], options);
      else if (event.key === "Escape") show(files, false);
      else if (event.key === "Tab" || event.key === "Enter") chooseFile(options[index].textContent);
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    }, true);
  }
  const goal = (text) => {
    const given = Object.fromEntries(new FormData(composer));
    const wanted = { goal: text };
    if (given.workspace) wanted.workspace = given.workspace;
    const axes = { workMode: given.mode, permissionProfile: given.profile, modelMode: given.model };
    const chosen = Object.entries(axes).filter(([, value]) => value);
    if (chosen.length) wanted.axes = Object.fromEntries(chosen);
    if (given.budget) wanted.budget_usd = Number(given.budget);
    return wanted;
  };
  // Kept on the server: what was begun at a desk is there on the phone.
  let draftTimer, savedDraft = message.defaultValue;
  const saveDraft = () => {
    clearTimeout(draftTimer);
    if (message.value === savedDraft) return;
    savedDraft = message.value;
    request("PUT", `/drafts/${session ?? "new"}`, { text: savedDraft }).catch(() => { savedDraft = null; });
  };
  const keepDraft = () => { clearTimeout(draftTimer); draftTimer = setTimeout(saveDraft, 600); };
  // What was written while the page was still loading counts too.
  if (message.value !== savedDraft) keepDraft();
  addEventListener("pagehide", saveDraft);
  addEventListener("resize", grow);
  grow();
}
