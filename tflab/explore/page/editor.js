/* Editor: a text area over the same text, whose lines have the colours of their nodes. */

import { make, pieces } from "../../report/page/elements.js";
import { indentAfter, indented } from "./text.js";

export class Editor {
  /** @param {(name: string) => any} part
   * @param {() => void} changed */
  constructor(part, changed) {
    this.area = /** @type {HTMLTextAreaElement} */ (part("text"));
    this.behind = /** @type {HTMLElement} */ (part("behind"));
    this.fusions = /** @type {HTMLElement} */ (part("fusions"));
    this.leaving = false; // whether the next Tab leaves
    /** @type {Map<number, string>} */
    this.classes = new Map(); // line -> the class that colours it
    this.wrong = null; // the line of an error
    this.area.addEventListener("input", () => {
      this.draw();
      changed();
    });
    this.area.addEventListener("keydown", (event) => this.key(event));
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    if (text === this.area.value) return;
    const { selectionStart, selectionEnd } = this.area;
    this.area.value = text;
    this.area.setSelectionRange(selectionStart, selectionEnd);
    this.draw();
  }

  draw() {
    const lines = this.area.value.split("\n").map((text, i) => {
      const names = ["line", this.classes.get(i + 1), this.wrong === i + 1 && "wrong"];
      return make("span", { class: names.filter(Boolean).join(" "), "data-line": i + 1 }, text || "\u200b");
    });
    this.behind.replaceChildren(...lines);
  }

  /** Give each line the colour of its nodes, and say which of them run as one.
   * @param {import("../../report/page/graph.js").Graph} graph */
  colour(graph) {
    this.classes = new Map([...graph.colourOfLine].map(([line, colour]) => [line, `line-${colour}`]));
    this.draw();
    const rows = (graph.data.fusions ?? []).map(({ lines, text }) => {
      const where = lines.length ? `Line${lines.length > 1 ? "s" : ""} ${lines.join(", ")}: ` : "";
      return make("li", { class: this.classes.get(lines[0]) }, where, ...pieces(text));
    });
    this.fusions.replaceChildren(...rows);
  }

  /** @param {number | null} line */
  mark(line) {
    this.wrong = line;
    this.draw();
  }

  /** Light some lines up.
   * @param {Set<number>} lines */
  light(lines) {
    [...this.behind.children].forEach((line, i) => line.classList.toggle("lit", lines.has(i + 1)));
  }

  /** The line below a point of the window, or null.
   * @param {number} y */
  lineAt(y) {
    const lines = /** @type {HTMLElement[]} */ ([...this.behind.children]);
    const at = lines.find((line) => {
      const { top, bottom } = line.getBoundingClientRect();
      return top <= y && y < bottom;
    });
    return at ? Number(at.dataset.line) : null;
  }

  key(event) {
    if (event.key === "Escape") {
      this.leaving = true;
      return;
    }
    const { value, selectionStart: start, selectionEnd: end } = this.area;
    if (event.key === "Tab" && !this.leaving && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      const change = indented(value, start, end, event.shiftKey);
      this.area.setSelectionRange(change.from, change.to);
      this.type(change.by);
      this.area.setSelectionRange(change.start, change.end);
    }
    const indent = event.key === "Enter" && start === end ? indentAfter(value, start) : "";
    if (indent) {
      event.preventDefault();
      this.type(`\n${indent}`);
    }
    this.leaving = false;
  }

  /* As the keyboard would, so that the browser can undo it. */
  type(text) {
    const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
    if (done) return;
    const { selectionStart, selectionEnd } = this.area;
    this.area.setRangeText(text, selectionStart, selectionEnd, "end");
    this.area.dispatchEvent(new Event("input"));
  }
}
