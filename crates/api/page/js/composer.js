// The input below the conversation: text over several lines, files, what is on its way, and stop.

import { explain, post, sessionUrl } from "./api.js";
import { notify } from "./dialog.js";
import { fill, h, icon, setText } from "./dom.js";
import { bytes, oneLine } from "./format.js";

/** @typedef {{name: string, media_type: string, data: string, size: number}} File64 */

/** The server knows more limits, and says so. */
const MOST_BYTES = 20_000_000;
const DRAFT_KEY = "lango.text.";

/** @param {HTMLElement} root the conversation; files can be dropped on all of it @param {ReturnType<typeof import("./outbox.js").createOutbox>} outbox */
export function createComposer(root, outbox) {
  const input = h("textarea", { rows: "1", placeholder: "Ask lango…", "aria-label": "Message", autocomplete: "off" });
  const picker = h("input", { type: "file", multiple: true, hidden: true, "aria-label": "Files to attach" });
  const attach = h("button.tool", { "aria-label": "Attach files", onclick: () => picker.click() }, icon("attach"));
  const send = h("button.button.primary.round", { "aria-label": "Send", onclick: submit }, icon("up"));
  const stop = h("button.button.round", { "aria-label": "Stop the running turn", onclick: () => running && stopTurn(running) }, icon("stop"));
  const hint = h("span.hint");
  const chips = h("div.files");
  const queue = h("ul.queue", { "aria-label": "On their way" });
  root.append(h("div.composer", queue, h("div.box", chips, input, h("div.compose-bar", attach, picker, hint, stop, send))));

  /** @type {string | null} */
  let session = null;
  /** @type {string | null} */
  let running = null;
  let isWaiting = false;
  /** @type {File64[]} */
  let files = [];

  function update() {
    send.disabled = input.value.trim() === "" && files.length === 0;
    stop.hidden = running === null;
    setText(hint, isWaiting ? "A request waits for your answer" : running ? "A turn is running; your message waits for its end" : "Enter sends, Shift+Enter breaks the line");
    fill(chips, files.map(chip));
    fill(queue, outbox.of(session).map(queued));
  }

  /** @param {File64} file */
  function chip(file) {
    const remove = () => {
      files = files.filter((other) => other !== file);
      update();
      input.focus();
    };
    return h("span.file", `${file.name}, ${bytes(file.size)}`, h("button.tool.small", { "aria-label": `Remove ${file.name}`, onclick: remove }, icon("close")));
  }

  /** @param {import("./outbox.js").Message} message */
  function queued(message) {
    const words = { sending: "sending", sent: "starting", queued: "queued", offline: "not sent yet, tries again", refused: "refused" };
    const { state, problem, turn } = message;
    const link = (/** @type {string} */ label, /** @type {() => void} */ onclick) => h("button.link", { onclick }, label);
    return h(
      "li",
      h("span.badge", words[state]),
      h("span.text", oneLine(message.text, 200), problem && h("small", problem)),
      (state === "offline" || state === "refused") && [link("Send again", () => outbox.send(message)), link("Edit", () => edit(message))],
      state === "queued" && link("Remove", async () => turn && (await stopTurn(turn)) && outbox.remove(message)),
    );
  }

  /** @param {import("./outbox.js").Message} message */
  function edit(message) {
    outbox.remove(message);
    setInput(message.text, message.attachments.map((file) => ({ ...file, size: Math.round(file.data.length * 0.75) })));
    input.focus();
  }

  /** @param {string} text @param {File64[]} [attached] */
  function setInput(text, attached = []) {
    input.value = text;
    files = attached;
    changed();
  }

  /** @param {string} turn */
  async function stopTurn(turn) {
    try {
      await post(sessionUrl(session ?? "", "turns", turn, "cancel"));
      return true;
    } catch (error) {
      notify(explain(error));
      return false;
    }
  }

  function submit() {
    const text = input.value.trim();
    if (text === "" && files.length === 0) return;
    const attachments = files.map(({ name, media_type, data }) => ({ name, media_type, data }));
    setInput("");
    outbox.add(session, text, attachments);
  }

  /** @param {Iterable<File>} picked */
  async function add(picked) {
    for (const file of picked) {
      const total = files.reduce((sum, other) => sum + other.size, file.size);
      if (total > MOST_BYTES) notify(`${file.name} is too large: the files of a message take at most ${bytes(MOST_BYTES)} together.`);
      else files.push({ name: file.name || "pasted", media_type: file.type || "text/plain", data: await base64(file), size: file.size });
    }
    update();
  }

  /** The text has changed: it is stored until it is sent. */
  function changed() {
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, innerHeight * 0.4)}px`;
    const key = DRAFT_KEY + (session ?? "new");
    if (input.value) localStorage.setItem(key, input.value);
    else localStorage.removeItem(key);
    update();
  }

  input.oninput = changed;
  input.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    submit();
  };
  input.onpaste = (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])];
    if (pasted.length === 0) return;
    event.preventDefault();
    add(pasted);
  };
  root.ondragover = root.ondragleave = root.ondrop = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    root.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") add([...event.dataTransfer.files]);
  };
  picker.onchange = () => {
    add([...(picker.files ?? [])]);
    picker.value = "";
  };

  return {
    update,
    focus: () => input.focus(),
    /** @param {string | null} id */
    open(id) {
      session = id;
      running = null;
      setInput(localStorage.getItem(DRAFT_KEY + (id ?? "new")) ?? "");
    },
    /** @param {string | null} turn @param {boolean} waits */
    setRunning(turn, waits) {
      if (turn === running && waits === isWaiting) return;
      running = turn;
      isWaiting = waits;
      update();
    },
  };
}

/** @param {File} file @returns {Promise<string>} */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
