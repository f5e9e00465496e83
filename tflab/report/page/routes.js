/* Routes: the path of an edge from box to box, beside what stands in its way. */

import { make, round } from "./elements.js";
import { BUS, TRACK_GAP } from "./layout.js";

const ASIDE = 12; // pixels, of an edge against the flow of its track from those along it
const [OUT, INTO] = [0.33, 0.67]; // of a box's height, where edges leave and arrive at its sides

const port = (rect, place) => rect.y + rect.height * place;

export class Routes {
  /** @param {import("./layout.js").Layout} layout */
  constructor(layout) {
    this.layout = layout;
    this.graph = layout.graph;
    this.known = new Map(); // paths, which stay as long as the layout
  }

  /* The path of an edge, found once. */
  path(a, b) {
    const key = `${a}>${b}`;
    if (!this.known.has(key)) this.known.set(key, this.find(a, b));
    return this.known.get(key);
  }

  /* Points of an edge at some parts of its length, each with whether the edge is upright there. */
  points(a, b, parts) {
    const key = `${a}>${b} points`;
    if (!this.known.has(key)) {
      const line = /** @type {SVGPathElement} */ (make("path", { d: this.path(a, b) }));
      const length = line.getTotalLength();
      this.known.set(key, parts.map((part) => {
        const [before, { x, y }, after] = [-2, 0, 2].map((step) => line.getPointAtLength(part * length + step));
        return { x, y, upright: Math.abs(after.y - before.y) > Math.abs(after.x - before.x) };
      }));
    }
    return this.known.get(key);
  }

  /* A path from box to box: along its lanes, or between the tracks. No edge leaves a box where others arrive. */
  find(a, b) {
    const from = this.layout.rects.get(a);
    const to = this.layout.rects.get(b);
    /** @type {[number, number]} */
    const tracks = [this.graph.track(a), this.graph.track(b)];
    if (tracks[0] !== tracks[1]) return this.across(from, to, tracks);
    const lanes = this.lanesOf(a, b);
    const middle = (rect) => rect.x + rect.width / 2;
    const sign = from.y + from.height <= to.y ? 1 : to.y + to.height <= from.y ? -1 : 0;
    if (!sign) {
      const right = from.x < to.x ? 1 : -1;
      const start = [right > 0 ? from.x + from.width : from.x, port(from, OUT)];
      const end = [right > 0 ? to.x : to.x + to.width, port(to, INTO)];
      return curve([start, end], false);
    }
    if (!lanes.length && this.skips(from, to)) return this.around(from, to, tracks[0]);
    lanes.sort((p, q) => sign * (p.top - q.top));
    /** @type {[number, number][]} */
    const points = [[middle(from), sign > 0 ? from.y + from.height : from.y]];
    for (const lane of lanes) {
      points.push([lane.x, sign > 0 ? lane.top : lane.bottom], [lane.x, sign > 0 ? lane.bottom : lane.top]);
    }
    points.push([middle(to), sign > 0 ? to.y : to.y + to.height]);
    const aside = sign > 0 === (tracks[0] === 1) ? ASIDE : 0; // gradients flow up
    return curve(points.map(([x, y]) => [x + aside, y]), true);
  }

  /* All lanes that an edge goes through: out of its scopes, on to the other, into its scopes. */
  lanesOf(a, b) {
    const [around, boxOfA, boxOfB] = this.graph.meeting(a, b);
    const deeper = (id) => this.graph.ways[id].slice(this.graph.ways[id].indexOf(around) + 2);
    const keys = [...deeper(a).map((id) => `${id}>-1`), `${boxOfA}>${boxOfB}`, ...deeper(b).map((id) => `-1>${id}`)];
    return keys.flatMap((key) => this.layout.lanes.get(key) || []);
  }

  /* Whether an edge without lanes would pass behind the boxes of other rows. */
  skips(from, to) {
    const [upper, lower] = from.y < to.y ? [from, to] : [to, from];
    return this.layout.gutters.filter((row) => row.top > upper.y + upper.height && row.bottom < lower.y && row.bottom > row.top).length > 0;
  }

  /* Along the edge of a track, beside its boxes. */
  around(from, to, track) {
    const way = to.y > from.y ? 1 : -1; // down on the left, up on the right
    const { x: left, width } = this.layout.tracks[track];
    const x = way > 0 ? left - BUS : left + width + BUS;
    const start = [from.x + (way > 0 ? 0 : from.width), port(from, OUT)];
    const end = [to.x + (way > 0 ? 0 : to.width), port(to, INTO)];
    const side = way > 0 ? 1 : -1;
    const turn = Math.min(10, Math.abs(end[1] - start[1]) / 2);
    return (
      `M${start.map(round)}L${[x + side * turn, start[1]].map(round)}` +
      `Q${[x, start[1], x, start[1] + way * turn].map(round)}L${[x, end[1] - way * turn].map(round)}` +
      `Q${[x, end[1], x + side * turn, end[1]].map(round)}L${end.map(round)}`
    );
  }

  /* From one track to another: level where nothing stands in the way, else through the gap
   * between two rows. */
  across(from, to, [a, b]) {
    if (b < a && !this.layout.stacked) return curve([[from.x, port(from, OUT)], [to.x + to.width, port(to, INTO)]], false);
    const start = this.way(from, a, 1);
    const end = this.way(to, b, -1);
    if (this.layout.stacked) return this.between(start, end, this.layout.tracks[Math.max(a, b)]);
    const points = [start.gate, end.gate];
    if (b - a > 1) {
      const row = this.layout.gutters.find((gutter) => gutter.bottom >= to.y) || this.layout.gutters.at(-1);
      const crossed = this.layout.tracks[1];
      points.splice(1, 0, [crossed.x - TRACK_GAP / 4, row.gutter]);
      points.splice(2, 0, [crossed.x + crossed.width + TRACK_GAP / 4, row.gutter]);
    }
    return start.path + curve(points, false).replace(start.path ? /^M[^CL]*/ : "", "") + end.path;
  }

  /* From one track to another below or above it: along the right of both, the gap between them, and the left. */
  between(start, end, { x, width, top }) {
    const [left, right, gap] = [x - BUS, x + width + BUS, top - 4];
    const corners = [[right, start.gate[1]], [right, gap], [left, gap], [left, end.gate[1]], end.gate];
    return (start.path || `M${start.gate.map(round)}`) + corners.map((corner) => `L${corner.map(round)}`).join("") + end.path;
  }

  /* How an edge gets from a box to the side of its track (1: right, -1: left), or back. */
  way(rect, track, side) {
    const middle = port(rect, side > 0 ? OUT : INTO);
    const edge = side > 0 ? rect.x + rect.width : rect.x;
    const [left, right] = [this.layout.tracks[track].x, this.layout.tracks[track].x + this.layout.tracks[track].width];
    const blocked = this.layout.solid.some(
      (box) =>
        box.y < middle && middle < box.y + box.height &&
        (side > 0 ? box.x >= edge && box.x < right : box.x + box.width <= edge && box.x >= left),
    );
    if (!blocked) return { path: "", gate: [edge, middle] };
    const above = (track === 1) === side > 0; // gradients flow up
    const half = this.layout.sizes.rowGap / 2;
    const gap = above ? rect.row[0] - half : rect.row[1] + half;
    const x = rect.x + rect.width * (side > 0 ? 0.75 : 0.25);
    const y = above ? rect.y : rect.y + rect.height;
    const turn = above ? 7 : -7;
    const gate = [side > 0 ? right : left, gap];
    const bend = [x, gap + turn];
    const out = [x + 7 * side, gap];
    const path =
      side > 0
        ? `M${[x, y].map(round)}L${bend.map(round)}Q${[x, gap, ...out].map(round)}L${gate.map(round)}`
        : `L${out.map(round)}Q${[x, gap, ...bend].map(round)}L${[x, y].map(round)}`;
    return { path, gate };
  }
}

/* A smooth line through points that leaves and arrives upright, or level. */
export function curve(points, upright) {
  let path = `M${points[0].map(round)}`;
  for (let i = 1; i < points.length; i++) {
    const [p, q] = [points[i - 1], points[i]];
    if (upright ? p[0] === q[0] : p[1] === q[1]) path += `L${q.map(round)}`;
    else if (upright) {
      const bend = (q[1] - p[1]) / 2;
      path += `C${[p[0], p[1] + bend, q[0], q[1] - bend, ...q].map(round)}`;
    } else {
      const bend = (q[0] - p[0]) / 2;
      path += `C${[p[0] + bend, p[1], q[0] - bend, q[1], ...q].map(round)}`;
    }
  }
  return path;
}
