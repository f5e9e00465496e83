/* Tab: Life in TensorBoard, a run or two beside one another. */

import { make } from "../../report/page/elements.js";
import { Life } from "./life.js";

const LOOK_MS = 10_000; // between two looks at the logdir

const NONE = "No run in this logdir has a life yet. tflab.lifecycle and tflab.run write one with --logdir.";

class Tab {
  constructor() {
    /** @type {(name: string) => any} */
    this.part = (name) => document.querySelector(`[data-part="${name}"]`);
    this.lives = ["run", "beside"].map((which) => new Life(this.part(`${which}-drawing`), this.part(`${which}-parts`), this.part(`${which}-viewer`)));
    this.menus = [this.part("run"), this.part("beside")];
    for (const menu of this.menus) menu.addEventListener("change", () => this.show());
    this.number = 0; // of the last request
    this.runs = null; // mark, name and version of each
    this.shown = ""; // which versions of which runs
    this.look();
    setInterval(() => document.hidden || this.look(), LOOK_MS);
    document.addEventListener("visibilitychange", () => document.hidden || this.look());
  }

  /* The runs of the logdir: new ones may be there, and the ones that are shown may be gone or written anew. */
  async look() {
    const runs = await fetch("runs").then((response) => response.json()).catch(() => null);
    if (!runs || JSON.stringify(runs) === JSON.stringify(this.runs)) return;
    this.runs = runs;
    this.menus.forEach((menu, place) => {
      const { value } = menu;
      const none = place ? [make("option", { value: "" }, "no other run")] : [];
      menu.replaceChildren(...none, ...runs.map(([mark, name]) => make("option", { value: mark }, name)));
      if (runs.some(([mark]) => mark === value)) menu.value = value;
    });
    this.part("status").textContent = runs.length ? "" : NONE;
    if (!runs.length) this.hide();
    else if (this.chosen() !== this.shown) this.show();
  }

  /* The runs that the menus name, with their versions. */
  chosen() {
    return JSON.stringify(this.menus.map((menu) => this.runs.find(([mark]) => mark === menu.value)));
  }

  async show() {
    const [run, beside] = this.menus.map((menu) => menu.value);
    const number = ++this.number;
    this.shown = this.chosen();
    this.part("status").textContent = "Reading";
    const query = beside ? `run=${beside}&before=${run}` : `run=${run}`;
    const response = await fetch(`run?${query}`).catch(() => null);
    if (number !== this.number) return;
    this.part("status").textContent = "";
    if (!response?.ok) {
      this.fail(response ? await response.text() : "TensorBoard does not answer.");
      return;
    }
    const told = await response.json();
    if (number !== this.number) return;
    this.part("error").hidden = true;
    try {
      this.draw(beside ? [told.before, told.run] : [told.run]);
    } catch {
      this.fail("The file of this run is damaged: it cannot be drawn.");
    }
  }

  fail(sentence) {
    this.hide();
    this.part("error").textContent = sentence;
    this.part("error").hidden = false;
  }

  hide() {
    this.part("error").hidden = true;
    for (const name of ["differs", "run-life", "beside-life"]) this.part(name).hidden = true;
  }

  draw(shown) {
    ["run", "beside"].forEach((which, place) => {
      const life = shown[place];
      this.part(`${which}-life`).hidden = !life;
      if (!life) return;
      const menu = this.menus[place];
      this.part(`${which}-name`).textContent = shown.length > 1 ? menu.selectedOptions[0].textContent : "";
      this.lives[place].draw(life);
      this.lives[place].list(life.parts);
    });
    const { since } = shown[shown.length - 1];
    this.part("differs").hidden = since === undefined;
    this.part("since").innerHTML = since ?? ""; // the server has escaped every name in it
  }
}

/* TensorBoard gives an empty page, whose base is the plugin's address. */
async function begin() {
  document.documentElement.lang = "en";
  const style = make("link", { rel: "stylesheet", href: "style.css" });
  const styled = new Promise((resolve) => style.addEventListener("load", resolve));
  document.head.append(style);
  const [markup] = await Promise.all([fetch("page.html").then((response) => response.text()), styled]);
  document.body.className = "live tab";
  document.body.innerHTML = markup;
  new Tab();
}

begin();
