/* Editor: a text area over the same text, whose lines have the colours of their nodes. */

import { make } from "../../report/page/elements.js";

const INDENT = "    ";

/** The white space of the line after this one: that of the line, and more behind a colon.
 * @param {string} line up to the cursor */
export function indentAfter(line) {
  return line.match(/^\s*/)[0] + (/:\s*$/.test(line) ? INDENT : "");
}

export class Editor {
  /** @param {(name: string) => any} part
   * @param {() => void} changed */
  constructor(part, changed) {
    this.area = /** @type {HTMLTextAreaElement} */ (part("text"));
    this.behind = /** @type {HTMLElement} */ (part("behind"));
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

  /** Give each line the colour of its nodes.
   * @param {import("../../report/page/graph.js").Graph} graph */
  colour(graph) {
    this.classes = new Map([...graph.colourOfLine].map(([line, colour]) => [line, `line-${colour}`]));
    this.draw();
  }

  /** @param {number | null} line */
  mark(line) {
    this.wrong = line;
    this.draw();
  }

  /** Light some lines up.
   * @param {number[]} lines */
  light(lines) {
    [...this.behind.children].forEach((line, i) => line.classList.toggle("lit", lines.includes(i + 1)));
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

  /* Tab and Enter write white space as the keyboard would, so that the browser can undo it. */
  key(event) {
    const { value, selectionStart: start, selectionEnd: end } = this.area;
    const line = value.slice(value.lastIndexOf("\n", start - 1) + 1, start);
    const tab = event.key === "Tab" && !this.leaving && !event.shiftKey && !event.ctrlKey && !event.altKey;
    const typed = tab ? INDENT : event.key === "Enter" && indentAfter(line) ? `\n${indentAfter(line)}` : "";
    if (typed && start === end) {
      event.preventDefault();
      document.execCommand("insertText", false, typed);
    }
    this.leaving = event.key === "Escape";
  }
}
