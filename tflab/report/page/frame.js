/* Frame: how large a drawing is in its paper, and how to get to what is outside of it. */

import { READING } from "./layout.js";

const LEGIBLE = 9; // pixels on the screen: letters are no smaller, unless the reader wants them so
export const LEAST = LEGIBLE / READING.type;
const LARGEST = 2.5;
const MOST_FITTED = 1.5; // a small drawing does not become larger than that to fit
const TALLEST = 0.9; // of the window; viewer.css says the same of the paper

export class Frame {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.paper = viewer.part("paper");
    this.fitted = true; // until the reader wants another scale
    viewer.part("larger").addEventListener("click", () => this.enlarge(1.25));
    viewer.part("smaller").addEventListener("click", () => this.enlarge(1 / 1.25));
    viewer.part("fit").addEventListener("click", () => this.fit());
    window.addEventListener("resize", () => this.refit(), { signal: viewer.ended.signal });
    this.width = 0; // of the paper when the drawing was fitted
    const observer = new ResizeObserver(() => this.paper.clientWidth !== this.width && this.refit());
    observer.observe(this.paper);
    viewer.ended.signal.addEventListener("abort", () => observer.disconnect());
  }

  /* The whole drawing where it can be read like that; else as much of its width as can. */
  fit() {
    this.fitted = true;
    const { width, height } = this.viewer.layout;
    const across = (this.paper.clientWidth - 2) / width;
    if (this.viewer.presenting) {
      this.scale(Math.min(across, (this.paper.clientHeight - 2) / height));
      return;
    }
    const whole = Math.min(MOST_FITTED, across, (TALLEST * window.innerHeight - 4) / height);
    this.scale(whole >= LEAST ? whole : Math.max(LEAST, Math.min(1, across)));
  }

  /* The same after the room has changed, where the reader has not chosen a scale. */
  refit() {
    this.width = this.paper.clientWidth;
    if (this.fitted) this.fit();
  }

  enlarge(factor) {
    this.fitted = false;
    this.scale(Math.max(0.02, Math.min(LARGEST, this.viewer.zoom * factor)));
  }

  scale(zoom) {
    this.viewer.zoom = zoom;
    const picture = this.paper.firstElementChild;
    for (const side of ["width", "height"]) {
      const pixels = String(this.viewer.layout[side] * zoom);
      if (picture.getAttribute(side) !== pixels) picture.setAttribute(side, pixels);
    }
  }

  /* Bring a box to the middle. */
  centre(id) {
    const { layout, zoom } = this.viewer;
    const rect = layout.rects.get(id);
    this.paper.scrollTo({
      left: (rect.x + rect.width / 2) * zoom - this.paper.clientWidth / 2,
      top: (rect.y + rect.height / 2) * zoom - this.paper.clientHeight / 2,
    });
  }
}
