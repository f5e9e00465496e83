/* Viewer: a drawing with its controls: which state is shown, what is open, what is selected. */

import { Graph } from "./graph.js";
import { Layout, READING, visibleBoxes } from "./layout.js";
import { Routes } from "./routes.js";
import { legend } from "./colours.js";
import { drawPicture } from "./picture.js";
import { NodeTable } from "./table.js";
import { Timeline } from "./timeline.js";
import { showHistory } from "./history.js";
import { Frame, LEAST, roomFor } from "./frame.js";

export class Viewer {
  /** @param {HTMLElement} root
   * @param {import("./data").GraphData} data */
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.mark = root.id; // for ids within the picture
    this.beside = root.closest(".annotated, .split") !== null; // whether the page has the program beside it
    /** @type {(name: string) => any} the element of the page that does this */
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.graph = new Graph(data);
    this.layout = new Layout(this.graph, getComputedStyle(this.part("paper")).fontFamily, READING);
    this.open = new Set(data.open);
    this.state = data.start;
    this.last = data.states.length - 1; // that can be shown
    this.asking = false; // whether the page asks what the reader expects
    this.presenting = false; // whether the drawing is on a projector
    this.selected = null;
    this.lit = new Set(); // nodes that something beside the drawing is about
    this.chosen = this.part("colour").value; // what the reader has the colours say
    /** @type {Map<number, string>} */
    this.marks = new Map(); // node -> `new` or `changed` since the last edit
    /** @type {((name: string) => void) | null} */
    this.listing = null; // shows the generated code of a node, in a page that has it
    this.ended = new AbortController(); // ends what listens outside of the root, when the page takes the viewer away
    this.zoom = 1;
    this.timeline = new Timeline(this);
    this.table = new NodeTable(this);
    this.frame = new Frame(this);
    this.controls();
    this.arrange();
    this.frame.fit();
    if (!this.frame.isReadable() && this.open.size) this.openOnly([]);
    if (root.closest(".annotated")) this.frame.reach(this.hottest());
  }

  /* What the colours say in this state: what the reader chose, or what its stage is about. */
  get colour() {
    if (this.chosen !== "stage" && !this.asking) return this.chosen;
    return this.data.stops.find((stop) => this.state <= stop.last).colour;
  }

  /* The box in view on which most time was spent. */
  hottest() {
    const heat = (id) => (this.data.boxes[id].framed && !this.open.has(id) ? (this.data.boxes[id].heat ?? -1) : -1);
    return [...this.layout.rects.keys()].reduce((most, id) => (heat(id) > heat(most) ? id : most));
  }

  controls() {
    this.part("colour").addEventListener("change", ({ target }) => {
      this.chosen = target.value;
      this.draw();
    });
    this.part("open-all").addEventListener("click", () => this.openOnly(this.allOpen ? [] : this.data.boxes.keys()));
    const search = this.part("search");
    search.addEventListener("input", () => (this.part("search-result").textContent = ""));
    search.addEventListener("keydown", ({ key }) => key === "Enter" && this.find(search.value));
    const paper = this.part("paper");
    paper.addEventListener("click", (event) => this.activate(event.target.closest("[data-box]")));
    paper.addEventListener("keydown", (event) => this.key(event));
    this.part("panel").addEventListener("keydown", (event) => event.key === "Escape" && this.leave());
    paper.addEventListener("focusin", (event) => {
      const box = event.target.closest("[data-box]");
      if (box) this.current = Number(box.dataset.box);
    });
  }

  go(state) {
    this.state = Math.max(0, Math.min(this.last, state));
    this.draw();
    this.frame.refit(); // the words on a state may need more room
  }

  /* While the page asks, a viewer has the graph as it was made, and no number of its steps. */
  ask(on) {
    this.last = on ? this.data.made : this.data.states.length - 1;
    this.asking = on;
    this.timeline.pause();
    this.close();
    this.go(this.state);
  }

  get allOpen() {
    return this.data.boxes.every((box, id) => !box.rows.length || !box.framed || this.open.has(id));
  }

  /* Open these scopes, and no others. */
  openOnly(scopes) {
    this.open = new Set(scopes);
    this.arrange();
    this.frame.fit();
  }

  find(text) {
    const query = text.trim();
    if (!query) return;
    const names = this.data.nodes.map((node) => node.name);
    let node = names.indexOf(query);
    if (node < 0) node = names.findIndex((name) => name.toLowerCase().includes(query.toLowerCase()));
    this.part("search-result").textContent = node < 0 ? "No node has this text in its name." : "";
    if (node >= 0) this.select(node, true);
  }

  /* Open or close a scope, or show the history of a node. */
  activate(element) {
    if (!element) return;
    const id = Number(element.dataset.box);
    const box = this.data.boxes[id];
    this.current = id;
    if (!box.rows.length) {
      if (!this.presenting) this.select(box.node, false);
      return;
    }
    const before = this.layout.rects.get(id);
    if (!this.open.delete(id)) this.open.add(id);
    if (this.presenting) {
      this.arrange();
      this.frame.fit();
      return;
    }
    this.frame.fitted = false; // so that the drawing stays as large as it is
    this.arrange();
    const after = this.layout.rects.get(id);
    this.part("paper").scrollBy((after.x - before.x) * this.zoom, (after.y - before.y) * this.zoom);
    this.focus(id);
  }

  /* Let these nodes stand out, and the closed scopes around them. */
  light(nodes) {
    if (!nodes.length && !this.lit.size) return;
    this.lit = new Set(nodes);
    this.relight();
  }

  relight() {
    for (const box of this.part("paper").querySelectorAll("[data-box]")) {
      const id = Number(box.dataset.box);
      const closed = !this.data.boxes[id].rows.length || !this.open.has(id);
      box.classList.toggle("lit", closed && this.graph.inside[id].some((node) => this.lit.has(node)));
    }
    this.part("paper").classList.toggle("lighting", this.lit.size > 0);
  }

  /* Show the history of a node beside the drawing; `reveal` opens what it is in and goes to it. */
  select(node, reveal) {
    const id = this.graph.boxOf.get(node);
    this.current = id;
    if (!this.asking) {
      this.selected = node;
      this.show();
    }
    if (reveal) {
      this.graph.ways[id].slice(0, -1).forEach((around) => this.open.add(around));
      this.arrange();
    } else this.draw();
    this.frame.refit();
    if (reveal && this.zoom < LEAST) this.frame.enlarge(1 / this.zoom);
    if (reveal) this.frame.reach(id);
    if (reveal) this.part("paper").scrollIntoView({ block: "nearest", behavior: "instant" });
    this.part("panel").scrollTop = 0;
    this.root.dispatchEvent(new Event("selected"));
    this.focus(id);
    const below = this.part("panel").offsetTop > this.part("paper").offsetTop;
    const seen = reveal || !below ? this.box(id) : this.part("panel").querySelector("h4");
    if (seen) seen.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /* The history of the selected node, beside the drawing. */
  show() {
    showHistory(this);
    this.root.classList.add("reading");
  }

  /* Close the history: the drawing has all the room again. */
  close() {
    this.selected = null;
    this.root.classList.remove("reading");
    this.draw();
    this.frame.refit();
    this.root.dispatchEvent(new Event("selected"));
  }

  leave() {
    this.close();
    this.focus(this.current);
  }

  box(id) {
    return this.part("paper").querySelector(`[data-box="${id}"]`);
  }

  focus(id) {
    this.box(id)?.focus({ preventScroll: true });
  }

  key(event) {
    const element = event.target.closest("[data-box]");
    if (!element || this.presenting) return;
    if (event.key === "Escape") this.leave();
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.activate(element);
      return;
    }
    const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = this.neighbour(Number(element.dataset.box), way);
    if (next === null) return;
    this.current = next;
    this.draw();
    this.focus(next);
    this.box(next).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /* The box that lies most in a direction: at the other end of an edge, or else any box. */
  neighbour(id, [dx, dy]) {
    const centre = (box) => {
      const { x, y, width, height } = this.layout.rects.get(box);
      return [x + width / 2, y + (this.layout.isOpen(box) ? 0 : height / 2)];
    };
    const [x, y] = centre(id);
    const nearest = (others) => {
      const ranked = others.flatMap((other) => {
        const [ox, oy] = centre(other);
        const along = (ox - x) * dx + (oy - y) * dy;
        return along > 0 ? [[along + 2 * Math.abs((ox - x) * dy) + 2 * Math.abs((oy - y) * dx), other]] : [];
      });
      return ranked.sort((one, other) => one[0] - other[0])[0]?.[1] ?? null;
    };
    const joined = this.drawn.filter(({ a, b }) => a === id || b === id).map(({ a, b }) => (a === id ? b : a));
    return nearest(joined) ?? nearest([...this.layout.rects.keys()].filter((box) => this.box(box)));
  }

  arrange() {
    this.layout.run(this.open, roomFor(this.part("paper").clientWidth));
    this.routes = new Routes(this.layout);
    this.visible = visibleBoxes(this.graph, this.layout);
    this.draw();
  }

  draw() {
    const paper = this.part("paper");
    const focused = paper.contains(document.activeElement) && document.activeElement !== paper;
    this.drawn = this.graph.edges(this.state, (node) => this.visible.get(node)); // closed scopes stand for what is in them
    const picture = drawPicture(this);
    paper.replaceChildren(picture);
    if (focused) this.focus(this.current);
    if (this.lit.size) this.relight();
    this.timeline.show();
    this.table.show();
    this.part("legend").replaceChildren(...legend(this.graph, this.colour, picture));
    this.part("open-all").textContent = this.allOpen ? "Close all" : "Open all";
  }
}
