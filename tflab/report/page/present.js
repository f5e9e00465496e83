/* Present: the drawing on a projector, a state on each screen. */

import { make } from "./elements.js";
import { Layout, PRESENTING } from "./layout.js";

const KEYS = {
  ArrowRight: 1, PageDown: 1, " ": 1, Enter: 1,
  ArrowLeft: -1, PageUp: -1, Backspace: -1,
};
const PROGRAM = 0.57; // of the screen are left of it

export class Presenter {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.screen = viewer.part("screen");
    this.button = viewer.part("present");
    this.button.addEventListener("click", () => (this.screen.open ? this.screen.close() : this.show()));
    this.screen.addEventListener("keydown", (event) => this.key(event));
    this.screen.addEventListener("close", () => this.leave());
    const { signal } = viewer.ended;
    document.addEventListener("fullscreenchange", () => {
      if (!document.fullscreenElement && this.full && this.screen.open) this.screen.close();
      this.full = Boolean(document.fullscreenElement);
    }, { signal });
  }

  /* The drawing and the words on its state go to the screen, as long as it is there; beside the first state stands the program. */
  show() {
    const { viewer, screen } = this;
    const { layout, open, selected } = viewer;
    this.before = { layout, open, selected, presenting: false };
    const lines = viewer.data.program.map(([number, code]) => make("li", { value: number, class: `line-${viewer.graph.colourOfLine.get(number)}` }, make("code", {}, code)));
    const program = make("div", { class: "program" }, make("p", {}, make("strong", {}, viewer.data.title)), make("ol", {}, ...lines));
    screen.replaceChildren(program);
    this.places = ["states", "caption", "drawn", "legend"].map((name) => {
      const part = viewer.part(name);
      const place = document.createComment(name);
      part.replaceWith(place);
      screen.append(part);
      return [place, part];
    });
    screen.showModal();
    this.button.textContent = "Close";
    viewer.part("paper").focus();
    viewer.presenting = true;
    viewer.layout = new Layout(viewer.graph, getComputedStyle(viewer.part("paper")).fontFamily, PRESENTING);
    viewer.selected = null;
    viewer.openOnly([]); // so that the whole is seen first
    const [{ x, width }] = viewer.layout.tracks;
    const end = viewer.part("paper").firstElementChild.getBoundingClientRect().left + (x + width) * viewer.zoom;
    const over = end > PROGRAM * window.innerWidth; // nodes
    program.classList.toggle("beside", lines.length > 0 && over);
    if (!over) program.style.maxWidth = `${0.95 * window.innerWidth - end}px`;
    viewer.frame.fit();
    document.documentElement.requestFullscreen?.().catch(() => null); // then the window is the screen
  }

  /* Back to the page, at the state that was shown last. */
  leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    const { viewer } = this;
    this.places.forEach(([place, part]) => place.replaceWith(part));
    this.button.textContent = "Present";
    Object.assign(viewer, this.before);
    viewer.openOnly(viewer.open);
    this.button.focus();
  }

  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.closest("button") && (event.key === " " || event.key === "Enter")) return;
    const { viewer } = this;
    const ends = { Home: 0, End: viewer.last };
    if (!(event.key in KEYS) && !(event.key in ends)) return;
    event.preventDefault();
    viewer.go(event.key in ends ? ends[event.key] : viewer.state + KEYS[event.key]);
  }
}
