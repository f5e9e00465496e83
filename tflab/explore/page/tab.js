/* Tab: Life in TensorBoard, a run of the logdir. */

import { make } from "../../report/page/elements.js";
import { Life } from "./life.js";

const NONE = "No run in this logdir has a life yet. tflab.lifecycle and tflab.run write one with --logdir.";

class Tab {
  /** @param {string[]} runs of the logdir */
  constructor(runs) {
    /** @type {(name: string) => any} */
    this.part = (name) => document.querySelector(`[data-part="${name}"]`);
    this.life = new Life(this.part("life"), this.part("parts"), this.part("viewer"));
    this.menu = this.part("run");
    this.menu.replaceChildren(...runs.map((name) => make("option", { value: name }, name)));
    this.menu.addEventListener("change", () => this.show());
    this.number = 0; // of the last request
    this.part("status").textContent = NONE;
    if (runs.length) this.show();
  }

  async show() {
    const number = ++this.number;
    this.part("status").textContent = "Reading";
    const response = await fetch(`run?run=${encodeURIComponent(this.menu.value)}`).catch(() => null);
    const told = await (response?.ok ? response.json() : response?.text())?.catch(() => null);
    if (number !== this.number) return;
    let problem = response?.ok ? "" : (told ?? "TensorBoard does not answer.");
    try {
      if (!problem) this.life.draw(told);
      if (!problem) this.life.list(told.parts);
    } catch {
      problem = "The file of this run cannot be shown: it cannot be drawn.";
    }
    this.part("status").textContent = "";
    this.part("error").textContent = problem;
    this.part("error").hidden = !problem;
    this.part("shown").hidden = Boolean(problem);
  }
}

/* TensorBoard gives an empty page, whose base is the plugin's address. */
async function begin() {
  document.documentElement.lang = "en";
  const style = make("link", { rel: "stylesheet", href: "style.css" });
  const styled = new Promise((resolve) => ["load", "error"].forEach((end) => style.addEventListener(end, resolve)));
  document.head.append(style);
  const [markup, runs] = await Promise.all([fetch("page.html").then((page) => page.text()), fetch("runs").then((names) => names.json()), styled]);
  document.body.className = "live tab";
  document.body.innerHTML = markup;
  new Tab(runs);
}

begin().catch(() => (document.body.textContent = "TensorBoard does not answer. Reload the page to try again."));
