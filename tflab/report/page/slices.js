/* Slices: the timeline of a step, which one can zoom; its plot is for paper. */

import { make, textWidth, round } from "./elements.js";

const [SLICE, AXIS, BETWEEN] = [24, 24, 3]; // pixels: a lane, the ticks above, and between two lanes
const SLICE_FONT = "12px system-ui, sans-serif";
/** @type {[string, number][]} */
const TIME_UNITS = [["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]];
const TICK_PIXELS = 90; // pixels from one tick to the next, at least
const LEAST_NS = 100; // ns that are shown at least
const LEAST_PIXELS = 0.5; // of a slice after another one
const NOTCH = 1.25; // of one notch of the wheel
const HELP = "Dark: on the critical path, by median times. The wheel or + and - zoom, dragging or arrows move, 0 fits. Point at an op for its name and time.";

/** Round times from `from` to `to`, at most `most` of them, each with its text.
 * @param {number} from
 * @param {number} to
 * @param {number} most
 * @returns {[number, string][]} */
export function ticks(from, to, most) {
  const least = (to - from) / Math.max(1, most);
  const power = 10 ** Math.max(0, Math.floor(Math.log10(least)));
  const step = [1, 2, 5, 10].map((part) => part * power).find((one) => one >= least) || power;
  const [unit, factor] = TIME_UNITS.findLast(([, one]) => to >= one) || TIME_UNITS[0];
  /** @type {[number, string][]} */
  const places = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    places.push([at, `${Number((at / factor).toPrecision(12))} ${unit}`]);
  }
  return places;
}

/** The part of a step after a zoom around a part of the width (0 left, 1 right) and a move by a part of it, within the step.
 * @param {{from: number, to: number}} view
 * @param {number} wall how long the step is
 * @param {number} factor 0 shows the whole step */
export function changed({ from, to }, wall, factor, around = 0, by = 0) {
  const span = Math.min(wall, Math.max(LEAST_NS, (to - from) / factor));
  const wanted = from + (to - from - span) * around + by * span;
  const start = Math.min(Math.max(0, wanted), wall - span);
  return { from: start, to: start + span };
}

export class Slices {
  /** @param {HTMLElement} figure
   * @param {{wall: number, lanes: string[], slices: [number, number, number, string, string, boolean][]}} data */
  constructor(figure, data) {
    this.data = data;
    this.view = { from: 0, to: data.wall };
    this.svg = make("svg", { class: "slices", tabindex: "0", role: "img", "aria-label": "The step, op by op: + and - zoom, arrows move, 0 fits" });
    this.said = make("p", { class: "slice-said", "aria-live": "polite" }, HELP);
    figure.classList.add("zoomable");
    figure.append(this.svg, this.said);
    this.svg.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.change(event.deltaY < 0 ? NOTCH : 1 / NOTCH, event.offsetX / this.width);
    }, { passive: false });
    this.svg.addEventListener("pointerdown", (event) => this.svg.setPointerCapture(event.pointerId));
    this.svg.addEventListener("pointermove", (event) => {
      if (event.buttons === 1) this.change(1, 0, -event.movementX / this.width);
      else this.say(event.target.closest("[data-slice]"));
    });
    this.svg.addEventListener("keydown", (event) => {
      const how = { "+": [NOTCH, 0.5], "-": [1 / NOTCH, 0.5], ArrowLeft: [1, 0, -0.1], ArrowRight: [1, 0, 0.1], 0: [0] }[event.key];
      if (!how || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      this.change(...how);
    });
    new ResizeObserver(() => this.draw()).observe(figure);
  }

  get width() {
    return this.svg.clientWidth || 600;
  }

  change(factor, around = 0, by = 0) {
    this.view = changed(this.view, this.data.wall, factor, around, by);
    this.draw();
  }

  say(slice) {
    if (slice) this.said.textContent = this.data.slices[Number(slice.dataset.slice)][4];
  }

  draw() {
    const { view: { from, to }, width } = this;
    const x = (ns) => ((ns - from) / (to - from)) * width;
    const height = AXIS + SLICE * this.data.lanes.length;
    const marks = ticks(from, to, Math.floor(width / TICK_PIXELS)).flatMap(([at, text]) => [
      make("line", { class: "tick", x1: round(x(at)), x2: round(x(at)), y1: AXIS - 6, y2: height }),
      make("text", x(at) + textWidth(text, SLICE_FONT) + 3 < width ? { class: "tick", x: round(x(at)) + 3, y: 12 } : { class: "tick", x: round(x(at)) - 3, y: 12, "text-anchor": "end" }, text),
    ]);
    const ends = this.data.lanes.map(() => -1); // of what is drawn already, in pixels
    const drawn = this.data.slices.flatMap(([lane, start, length, name, said, critical], number) => {
      if (start + length < from || start > to || x(start + length) < ends[lane] + LEAST_PIXELS) return [];
      const left = Math.max(0, x(start));
      ends[lane] = x(start + length);
      const wide = Math.max(1, Math.min(width, x(start + length)) - left);
      const label = [name, name.slice(name.lastIndexOf("/") + 1)].find((text) => textWidth(text, SLICE_FONT) < wide - 8);
      const y = AXIS + lane * SLICE;
      return [make("g", { "data-slice": number, class: critical ? "critical" : null },
        make("title", {}, said),
        make("rect", { x: round(left), y: y + BETWEEN / 2, width: round(wide), height: SLICE - BETWEEN }),
        label === undefined ? null : make("text", { x: round(left + 4), y: y + SLICE / 2 + 4 }, label))];
    });
    const named = this.data.lanes.filter(Boolean).length > 1 ? this.data.lanes : [];
    const devices = named.map((name, lane) => make("text", { class: "tick", x: width - 2, y: AXIS + lane * SLICE + SLICE / 2 + 4, "text-anchor": "end" }, name));
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", String(height));
    this.svg.replaceChildren(...marks, ...drawn, ...devices);
  }
}
