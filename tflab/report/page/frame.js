/* Frame: how large a drawing is in its paper, and how to get to what is outside of it. */

import { BUS, READING } from "./layout.js";

const LEGIBLE = 10; // pixels on the screen: no drawing becomes smaller by itself, but scrolls
export const LEAST = LEGIBLE / READING.type;
const SMALL = 1000; // pixels of a window whose drawings are closely spaced
const ENOUGH = 11 / READING.type; // letters of 11 pixels on the screen need not be enlarged
const [SMALLEST, LARGEST] = [0.02, 2.5];
const MOST_FITTED = 1.5; // a small drawing does not become larger than that to fit
const LOWEST = 200; // pixels of a paper, however low the window is
const TURN = 0.002; // of the scale, for each pixel of the wheel
const STILL = 4; // pixels that a click may move

/* The width that a drawing may have in so many pixels of a small window; in a large one it is as wide as it is. */
export const roomFor = (pixels) => (window.innerWidth < SMALL ? pixels / LEAST : Infinity);

export class Frame {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.paper = viewer.part("paper");
    this.fitted = true; // until the reader wants another scale
    this.least = LEAST; // of the scale, until the reader wants the whole drawing
    viewer.part("larger").addEventListener("click", () => this.enlarge(1.25));
    viewer.part("smaller").addEventListener("click", () => this.enlarge(1 / 1.25));
    viewer.part("fit").addEventListener("click", () => this.fit(0));
    window.addEventListener("resize", () => this.refit(), { signal: viewer.ended.signal });
    this.width = 0; // of the paper when the drawing was fitted
    const observer = new ResizeObserver(() => this.paper.clientWidth !== this.width && this.refit());
    observer.observe(this.paper);
    viewer.ended.signal.addEventListener("abort", () => observer.disconnect());
    this.paper.addEventListener("wheel", (event) => this.turn(event), { passive: false });
    this.way = 0; // of the mouse since its button is down
    this.paper.addEventListener("pointerdown", () => (this.way = 0));
    this.paper.addEventListener("pointermove", (event) => this.drag(event));
    this.paper.addEventListener("click", (event) => this.way > STILL && event.stopImmediatePropagation(), { capture: true });
  }

  /* The whole drawing, in what the window has below the controls, in letters that can be read. */
  fit(least = this.least) {
    const { viewer, paper } = this;
    [this.fitted, this.least] = [true, least];
    this.width = paper.clientWidth;
    if (!this.width) return; // it is not shown
    if (viewer.layout.room !== roomFor(this.width)) viewer.arrange();
    paper.style.maxHeight = viewer.presenting ? "" : `${this.room()}px`;
    viewer.part("panel").style.minHeight = paper.style.maxHeight;
    this.scale(viewer.presenting ? this.whole(paper.clientHeight) : Math.max(least, this.whole(this.room())));
  }

  /* The scale at which the whole drawing is in a room of so many pixels. */
  whole(room) {
    const { layout, presenting } = this.viewer;
    const whole = Math.min((this.paper.clientWidth - 2) / layout.width, (room - 4) / layout.height);
    return presenting ? whole : Math.min(MOST_FITTED, whole);
  }

  /* Of the window: below the head of a page that begins with the drawing, unless it cannot be read there. */
  room() {
    const near = this.head() < window.innerHeight / 8 || this.isReadable();
    return this.below(near ? this.head() : 0);
  }

  /* Whether the whole can be read below the head of the page. */
  isReadable() {
    return this.whole(this.below(this.head())) >= ENOUGH;
  }

  /* How much of the window is above the viewer before the page is scrolled; 0 if that is most of it. */
  head() {
    const top = this.viewer.root.getBoundingClientRect().top + window.scrollY;
    return top < window.innerHeight / 3 ? top : 0;
  }

  /* What a window has for the paper, below the controls and so many pixels. */
  below(head) {
    const [own, around] = [this.paper, this.viewer.root].map((element) => element.getBoundingClientRect().top);
    return Math.max(LOWEST, Math.floor(window.innerHeight - head - (own - around) - 6));
  }

  /* The same after the room has changed, where the reader has not chosen a scale. */
  refit() {
    if (this.fitted) this.fit();
  }

  /* Another scale, at which a point of the window shows what it shows now: its middle by default. */
  enlarge(factor, x = null, y = null) {
    const { paper, viewer } = this;
    this.fitted = false;
    const around = paper.getBoundingClientRect();
    const [px, py] = [x ?? around.left + around.width / 2, y ?? around.top + around.height / 2];
    const [before, { left, top }] = [viewer.zoom, paper.firstElementChild.getBoundingClientRect()];
    this.scale(Math.max(SMALLEST, Math.min(LARGEST, before * factor)));
    const [grown, now] = [viewer.zoom / before, paper.firstElementChild.getBoundingClientRect()];
    paper.scrollBy({ left: now.left - px + (px - left) * grown, top: now.top - py + (py - top) * grown, behavior: "instant" });
  }

  /* The wheel scrolls the page, unless the reader is in the drawing or holds Ctrl. */
  turn(event) {
    if (!event.ctrlKey && !this.paper.contains(document.activeElement)) return;
    event.preventDefault();
    this.enlarge(Math.exp(-TURN * event.deltaY), event.clientX, event.clientY);
  }

  /* The mouse moves what is larger than its paper; fingers scroll it anyway. */
  drag({ buttons, pointerType, movementX, movementY }) {
    if (buttons !== 1 || pointerType !== "mouse") return;
    this.way += Math.hypot(movementX, movementY);
    if (this.way > STILL) this.paper.scrollBy({ left: -movementX, top: -movementY, behavior: "instant" });
  }

  scale(zoom) {
    this.viewer.zoom = zoom;
    const picture = this.paper.firstElementChild;
    for (const side of ["width", "height"]) {
      const pixels = String(this.viewer.layout[side] * zoom);
      if (picture.getAttribute(side) !== pixels) picture.setAttribute(side, pixels);
    }
  }

  /* Scroll no further than a box needs to be in view, to the left of a track if that will do. */
  reach(id) {
    const { layout, zoom } = this.viewer;
    const { x, y, width, height } = layout.rects.get(id);
    const [right, bottom] = [x + width + BUS - this.paper.clientWidth / zoom, y + height + BUS - this.paper.clientHeight / zoom];
    const tracks = layout.tracks.map((track) => track.x).filter((left) => left - BUS >= right);
    this.paper.scrollTo({ left: right > 0 ? (Math.min(x, ...tracks) - BUS) * zoom : 0, top: bottom * zoom });
  }
}
