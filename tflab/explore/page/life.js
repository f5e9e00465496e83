/* Life: a drawing with its tables below, which the next version takes the place of. */

import { make } from "../../report/page/elements.js";
import { Presenter } from "../../report/page/present.js";
import { printable } from "../../report/page/prints.js";
import { Viewer } from "../../report/page/viewer.js";
import { restore, seenAs, stateOf } from "./seen.js";

const CODE = "Generated code"; // the title of the part that has the listings
const OPEN = ["In short", "Ops"]; // of what stands below the drawing

export class Life {
  /** @param {HTMLElement} drawing where the drawing goes
   * @param {HTMLElement} parts where the tables go
   * @param {HTMLTemplateElement} template the markup of a viewer, with ids that no other has */
  constructor(drawing, parts, template) {
    this.drawing = drawing;
    this.parts = parts;
    this.template = template;
    this.viewer = null;
    this.open = new Map(OPEN.map((title) => [title, true])); // below the drawing
    window.addEventListener("beforeprint", () => this.print());
  }

  /** A new drawing, which is seen as the one before was.
   * @param {{ graph: any, marks?: Record<string, string> }} life
   * @param {{ stage: string, title: string } | null} goal the state to show, the last one by default */
  draw({ graph, marks }, goal = null) {
    const before = this.viewer && seenAs(this.viewer);
    this.viewer?.ended.abort();
    const root = /** @type {HTMLElement} */ (this.template.content.firstElementChild.cloneNode(true));
    this.drawing.replaceChildren(root);
    if (before) root.querySelector(`option[value="${before.chosen}"]`)?.setAttribute("selected", "");
    const viewer = new Viewer(root, graph);
    new Presenter(viewer);
    const places = new Map(graph.nodes.map((node, place) => [node.name, place]));
    viewer.marks = new Map(Object.entries(marks || {}).map(([name, word]) => [places.get(name), word]));
    this.viewer = viewer;
    viewer.listing = (name) => this.show(name);
    viewer.state = stateOf(graph.states, goal);
    if (before) restore(viewer, before, places);
    else viewer.draw();
  }

  /** What stands below the drawing; the server has escaped every name in it.
   * @param {Record<string, string>} parts */
  list(parts) {
    const sections = Object.entries(parts).map(([title, html]) => {
      const details = /** @type {HTMLDetailsElement} */ (make("details", { class: "later" }, make("summary", {}, make("h2", {}, title))));
      const body = make("div");
      body.innerHTML = html;
      details.open = this.open.get(title) === true;
      details.addEventListener("toggle", () => this.open.set(title, details.open));
      details.append(body);
      return details;
    });
    this.parts.replaceChildren(...sections);
  }

  /* The generated code of a node, or all of it. */
  show(name) {
    const part = [...this.parts.querySelectorAll("details")].find((details) => details.querySelector("h2").textContent === CODE);
    const titles = [...(part?.querySelectorAll(".grid > p") ?? [])];
    part?.setAttribute("open", "");
    (titles.find((title) => title.textContent.split(/[ :,]+/).includes(name)) ?? part)?.scrollIntoView({ block: "center" });
  }

  /* Paper shows each stop, and all that stands below. */
  print() {
    if (this.viewer) printable(this.viewer);
    for (const details of this.parts.querySelectorAll("details")) details.open = true;
  }

  /** Light up the boxes of lines.
   * @param {number[]} wanted */
  light(wanted) {
    this.viewer?.light(this.viewer.data.lines.flatMap((own, node) => (own.some((line) => wanted.includes(line)) ? [node] : [])));
  }
}
