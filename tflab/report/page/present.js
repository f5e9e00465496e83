/* Present: a state on each screen, for a projector, with a sentence on what to look at. */

import { Layout, PRESENTING, visibleBoxes } from "./layout.js";
import { Routes } from "./routes.js";
import { legend } from "./colours.js";
import { drawPicture, inert } from "./picture.js";
import { render } from "./sketch.js";
import { nodeCount } from "./timeline.js";

const KEYS = {
  ArrowRight: 1, PageDown: 1, " ": 1, Enter: 1,
  ArrowLeft: -1, PageUp: -1, Backspace: -1,
};

export class Presenter {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.graph = viewer.graph;
    this.data = viewer.data;
    this.part = viewer.part;
    this.mark = `${viewer.mark}-screen`;
    this.selected = null;
    this.current = null;
    this.open = new Set();
    const screen = this.part("screen");
    this.part("present").addEventListener("click", () => this.show());
    this.part("screen-before").addEventListener("click", () => this.go(this.state - 1));
    this.part("screen-after").addEventListener("click", () => this.go(this.state + 1));
    this.part("screen-close").addEventListener("click", () => screen.close());
    screen.addEventListener("keydown", (event) => this.key(event));
    screen.addEventListener("close", () => this.leave());
    this.part("sheet").addEventListener("click", (event) => this.toggle(event.target.closest("[data-box]")));
    const { signal } = viewer.ended;
    window.addEventListener("resize", () => screen.open && this.draw(), { signal });
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement && this.full && screen.open) screen.close();
      this.full = Boolean(document.fullscreenElement);
    }, { signal });
  }

  /* What the colours say on this screen. */
  get colour() {
    return this.viewer.chosen !== "stage" ? this.viewer.chosen : this.stop().colour;
  }

  stop() {
    return this.data.stops.find((stop) => this.state <= stop.last);
  }

  async show() {
    this.viewer.timeline.pause();
    this.state = this.viewer.state;
    this.layout = new Layout(this.graph, getComputedStyle(this.viewer.root).fontFamily, PRESENTING);
    this.open.clear(); // so that the whole is seen first
    this.part("screen").showModal();
    this.part("sheet").focus();
    this.arrange();
    try {
      await document.documentElement.requestFullscreen();
    } catch {
      // Where the browser does not let it, the window is the screen.
    }
  }

  arrange() {
    this.layout.run(this.open);
    this.routes = new Routes(this.layout);
    this.visible = visibleBoxes(this.graph, this.layout);
    this.draw();
  }

  /* Open or close a scope; the drawing still fits on the screen. */
  toggle(element) {
    const id = element && Number(element.dataset.box);
    if (!element || !this.data.boxes[id].rows.length) return;
    if (this.open.has(id)) this.open.delete(id);
    else this.open.add(id);
    this.arrange();
  }

  /* Back to the page, at the state that was shown last. */
  leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    this.viewer.go(this.state);
    this.part("present").focus();
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("button") && (event.key === " " || event.key === "Enter")) return;
    const ends = { Home: 0, End: this.data.states.length - 1 };
    if (!(event.key in KEYS) && !(event.key in ends)) return;
    event.preventDefault();
    this.go(event.key in ends ? ends[event.key] : this.state + KEYS[event.key]);
  }

  go(state) {
    this.state = Math.max(0, Math.min(this.data.states.length - 1, state));
    this.draw();
  }

  draw() {
    const { states, stops } = this.data;
    const state = states[this.state];
    const stop = this.stop();
    const title = state.title === stop.title ? "" : `: ${state.title}`;
    this.part("screen-stop").textContent = `${stops.indexOf(stop) + 1} ${stop.title}${title}`;
    this.part("screen-count").textContent = nodeCount(states, this.state);
    this.part("screen-look").textContent = state.look;
    this.part("screen-number").textContent = `${this.state + 1} of ${states.length}`;
    this.part("screen-before").disabled = this.state === 0;
    this.part("screen-after").disabled = this.state === states.length - 1;
    this.drawn = this.graph.edges(this.state, (node) => this.visible.get(node));
    const sheet = this.part("sheet");
    this.zoom = 1;
    const picture = render(drawPicture(this));
    sheet.replaceChildren(picture);
    inert(picture);
    this.part("screen-legend").replaceChildren(...legend(this.graph, this.colour, picture));
    this.fit(sheet, picture);
  }

  /* The whole drawing, as large as the screen allows. */
  fit(sheet, picture) {
    const { width, height } = this.layout;
    const zoom = Math.min((sheet.clientWidth - 2) / width, (sheet.clientHeight - 2) / height);
    picture.setAttribute("width", width * zoom);
    picture.setAttribute("height", height * zoom);
  }
}
