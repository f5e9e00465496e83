/* Explore: the program is run after each edit, and its life is shown stage by stage as it comes. */

import { Life } from "./life.js";
import { stateSeen } from "./seen.js";
import { Predictor } from "../../report/page/predict.js";
import { packed, unpacked } from "./address.js";
import { Editor } from "./editor.js";
import { ProgramFile } from "./file.js";

const PAUSE_MS = 200; // without a key, after which the program runs
const HIDDEN = "<p>The list comes with the answers.</p>";
const NEXT = { frontend: "backward", backward: "placement", placement: "execution", execution: "values" };

/** The lines of an answer as they come, each as an object.
 * @param {Response} response */
async function* messages(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    // Each piece is read when the one before is shown
    // oxlint-disable-next-line no-await-in-loop
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) yield JSON.parse(line);
  }
}

/** What a file needs of its page.
 * @typedef {{ text: string, say(text: string): void, take(text: string): void }} Page */

class Explorer {
  constructor() {
    const { start, defaults } = JSON.parse(document.getElementById("settings").textContent);
    this.start = start;
    this.defaults = defaults;
    /** @type {(name: string) => any} */
    this.part = (name) => document.querySelector(`[data-part="${name}"]`);
    this.page = crypto.randomUUID();
    this.number = 0; // of the last request
    this.life = new Life(this.part("life"), this.part("parts"), this.part("viewer"));
    this.goal = null; // the state that the reader wants to see, where it is not the last
    this.shown = null; // the last stage that came
    this.predictor = new Predictor(this.part("predict"), this.part("predicting"), (on) => this.ask(on), { live: true });
    this.editor = new Editor(this.part, () => this.later());
    this.file = new ProgramFile(this.start, this);
    this.controls();
    this.begin();
  }

  async begin() {
    if (!(await this.restore(location.hash))) {
      this.set({ text: this.start.text });
      this.run();
    }
    this.file.follow();
  }

  /* Take the state of an address, if it has one. A program that this tab has not run before may come
   * from anybody, so it waits for the reader's word. */
  async restore(fragment) {
    const state = fragment.length > 1 && (await unpacked(fragment.slice(1)));
    if (!state) return false;
    this.set(state);
    this.hold(sessionStorage.getItem("run") !== fragment);
    this.run();
    return true;
  }

  hold(on) {
    this.held = on;
    this.part("held").hidden = !on;
    this.part("waiting").hidden = on || Boolean(this.life.viewer);
  }

  controls() {
    this.part("switches").addEventListener("input", () => this.later());
    this.part("switches").addEventListener("submit", (event) => event.preventDefault());
    this.part("restart").addEventListener("click", async () => {
      this.say("TensorFlow is loading again.");
      await this.post("/restart", {});
      this.run();
    });
    this.part("link").addEventListener("click", () => this.copy());
    this.part("life").addEventListener("click", (event) => {
      // The reader wants to see this state, also after an edit; the last one means whatever is last
      if (event.target.closest("[data-state], [data-part=before], [data-part=after]")) this.goal = stateSeen(this.life.viewer);
    });
    this.part("go").addEventListener("click", () => {
      this.hold(false);
      this.run();
    });
    window.addEventListener("hashchange", () => this.restore(location.hash));
    this.part("editor").addEventListener("mousemove", (event) => {
      const line = this.editor.lineAt(event.clientY);
      this.light(line !== null && this.life.viewer?.graph.colourOfLine.has(line) ? [line] : []);
    });
    this.part("life").addEventListener("mouseover", (event) => {
      const box = event.target.closest("[data-box]");
      this.light(box ? this.life.viewer.graph.linesOf(Number(box.dataset.box)) : []);
    });
    for (const name of ["editor", "life"]) this.part(name).addEventListener("mouseleave", () => this.light([]));
  }

  /** Light up lines and their boxes.
   * @param {number[]} lines */
  light(lines) {
    this.editor.light(lines);
    this.life.light(lines);
  }

  get text() {
    return this.editor.text;
  }

  /** The program is another one from now on.
   * @param {string} text */
  take(text) {
    this.editor.text = text;
    this.run();
  }

  /* What is asked for: the program and its switches. */
  asked() {
    const { batch_size, devices, xla, pass } = this.part("switches").elements;
    return {
      text: this.text,
      batch_size: Number(batch_size.value),
      devices: Number(devices.value),
      xla: xla.checked,
      without: [...pass].filter((box) => !box.checked).map((box) => box.value),
      predict: this.predictor.on,
    };
  }

  set(state) {
    const asked = { ...this.defaults, ...state };
    const { elements } = this.part("switches");
    this.editor.text = String(asked.text);
    for (const name of ["batch_size", "devices"]) elements[name].value = asked[name];
    elements.xla.checked = asked.xla === true;
    for (const box of elements.pass) box.checked = !asked.without.includes(box.value);
    this.predictor.turn(asked.predict === true);
  }

  /* Run when no key has come for a moment. */
  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.run(), PAUSE_MS);
  }

  say(text) {
    this.part("status").textContent = text;
  }

  post(path, body, signal) {
    return fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal });
  }

  async run() {
    clearTimeout(this.timer);
    if (this.held) return;
    this.abort?.abort();
    this.abort = new AbortController();
    const asked = this.asked();
    const number = ++this.number;
    const off = asked.without.length;
    this.part("off").textContent = off ? `(${off} off)` : "";
    const fragment = `#${await packed(asked)}`;
    sessionStorage.setItem("run", fragment);
    history.replaceState(null, "", fragment);
    this.printed = "";
    this.asking = asked.predict;
    this.predictor.clear();
    this.say("Running: frontend");
    Object.assign(this.part("life").dataset, { run: "running", number, stage: "" });
    try {
      const response = await this.post("/run", { page: this.page, number, asked }, this.abort.signal);
      if (!response.ok) {
        this.fail({ message: await response.text(), line: null });
        return;
      }
      for await (const message of messages(response)) {
        if (number !== this.number) return;
        this.show(message);
      }
    } catch (error) {
      if (error.name !== "AbortError") this.fail({ message: `The server does not answer, or the page cannot draw this stage: ${error.message}`, line: null });
    }
  }

  show(message) {
    if (message.printed) this.printed += message.printed;
    this.part("printing").hidden = !this.printed;
    this.part("printed").textContent = this.printed;
    if (message.error) this.fail(message.error);
    if (message.done) this.finish("done");
    if (message.stage) {
      this.shown = message;
      this.part("error").hidden = true;
      this.editor.mark(null);
      this.outdate(false);
      const next = NEXT[message.stage];
      this.say(next ? `Running: ${next}` : "");
      if (message.stage === "frontend") this.written = message;
      if (!this.asking || message === this.written) this.reveal();
      if (message.questions) this.predictor.put(message.questions);
      if (message.questions && this.asking) this.predictor.ask(true);
      this.part("life").dataset.stage = message.stage;
    }
  }

  /* What a reader who is asked first may see, or all. */
  reveal() {
    const message = this.asking ? { ...this.written, parts: {}, since: HIDDEN, marks: {} } : this.shown;
    this.life.draw(message, this.goal);
    this.editor.colour(this.life.viewer.graph);
    if (message.since !== undefined) this.part("since").innerHTML = message.since; // the server has escaped every name in it
    this.life.list(message.parts);
  }

  /* Hide the results until the reader has answered, or show them. Questions come only with a run that
   * was asked for them. */
  ask(on) {
    if (on && !this.shown?.questions) {
      this.run();
    } else if (this.asking !== on) {
      this.asking = on;
      this.reveal();
    }
  }

  fail({ message, line }) {
    const where = line ? `Line ${line}: ` : "";
    this.part("error").textContent = where + message;
    this.part("error").hidden = false;
    this.editor.mark(line);
    this.outdate(true);
    if (this.part("life").dataset.stage) this.ask(false); // no questions will come
    this.finish("failed");
  }

  finish(how) {
    this.say("");
    this.part("life").dataset.run = how;
  }

  /* Whether what is shown is older than the program. */
  outdate(on) {
    for (const name of ["life", "parts", "since"]) this.part(name).classList.toggle("stale", on);
    this.part("waiting").hidden = true;
  }

  async copy() {
    const link = `#${await packed(this.asked())}`;
    history.replaceState(null, "", link);
    const copied = await navigator.clipboard.writeText(link).then(() => true, () => false);
    this.say(copied ? "Copied. Paste it after the address of any page of tflab.explore." : "The page cannot copy the link: copy the text after the # in the address bar.");
  }
}

new Explorer();
