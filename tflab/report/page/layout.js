/* Layout: sizes and places for boxes.
 *
 * The order of boxes comes with the data. Scopes can be open or closed, so their sizes are found
 * here, from the inside out, and then their places, from the outside in.
 */

import { least, most, textWidth } from "./elements.js";
import { CONTROLS, INPUTS, OP, saysOp, valueLines } from "./graph.js";

export const READING = { name: 13, type: 13, rowGap: 15, pad: 6, both: true }; // pixels of letters, and between rows; both: op and values
export const PRESENTING = { name: 20, type: 17, rowGap: 11, pad: 4, both: false }; // for a projector
export const LEADING = 3; // between the lines of a box
const [WIDE, NARROW] = [{ gap: 10, edge: 8 }, { gap: 6, edge: 5 }]; // pixels between boxes of a row, and beside their text
export const TRACK_GAP = 44; // room for the edges between forward, backward and update
export const BUS = 14; // from a track to the edges beside it
const LANE = 8; // width of a long edge in a row that it passes
const PAD = 12; // around what is in an open scope
export const MARGIN = 6;
const NARROWEST = 90; // of a track
const PHONE = 600; // pixels of a drawing: in less room its tracks need not be side by side
const SWEEPS = 24; // over the rows, each time with straighter edges
const LITTLE = 0.1; // the weight of constants and the like in finding places

/* Positions closest to those desired, in their order and a gap apart: weighted isotonic
 * regression by the pool-adjacent-violators algorithm. */
export function spaced(desired, weights, sizes, gap) {
  const offsets = [];
  sizes.forEach((size, i) => offsets.push(i ? offsets[i - 1] + (sizes[i - 1] + size) / 2 + gap : 0));
  const pools = [];
  desired.forEach((x, i) => {
    pools.push({ sum: weights[i] * (x - offsets[i]), weight: weights[i], count: 1 });
    while (pools.length > 1) {
      const [a, b] = pools.slice(-2);
      if (a.sum / a.weight <= b.sum / b.weight) break;
      pools.splice(-2, 2, { sum: a.sum + b.sum, weight: a.weight + b.weight, count: a.count + b.count });
    }
  });
  const placed = [];
  for (const pool of pools) {
    for (let i = 0; i < pool.count; i++) placed.push(pool.sum / pool.weight + offsets[placed.length]);
  }
  return placed;
}

export class Layout {
  /** @param {import("./graph.js").Graph} graph
   * @param {string} family of letters
   * @param {typeof READING} sizes
   * @param {(text: string, font: string) => number} width in pixels */
  constructor(graph, family, sizes, width = textWidth) {
    this.graph = graph;
    this.textWidth = width;
    this.data = graph.data;
    this.sizes = sizes;
    this.fonts = { name: `600 ${sizes.name}px ${family}`, type: `${sizes.type}px ${family}` };
    this.head = sizes.name + 13; // the height of a scope's label
    this.types = this.data.nodes.map((node, number) => [
      ...new Set(node.versions.flatMap((version) => [version[OP], graph.placed(number, version)])),
    ]);
    this.pairs = new Map(); // container -> pairs of boxes in it that edges join
    this.data.nodes.forEach((node, number) => {
      for (const version of node.versions) {
        for (const source of [...version[INPUTS], ...version[CONTROLS]]) this.join(source, number);
      }
    });
  }

  join(source, target) {
    const { boxOf } = this.graph;
    if (!boxOf.has(source) || !boxOf.has(target)) return;
    const [around, a, b] = this.graph.meeting(boxOf.get(source), boxOf.get(target));
    if (around === null || a === undefined || b === undefined) return;
    if (!this.pairs.has(around)) this.pairs.set(around, new Map());
    this.pairs.get(around).set(`${a}>${b}`, [a, b]);
  }

  /* Sizes from the inside out, then places from the outside in; a small screen has so much `room` for the width. */
  run(open, room = Infinity) {
    this.open = open;
    this.room = room;
    this.limit = room < PHONE ? room : Infinity;
    this.spare = room < Infinity ? NARROW : WIDE;
    this.rects = new Map();
    this.lanes = new Map();
    this.solid = []; // what an edge must not pass behind
    const inner = this.data.tracks.map((track) => this.arranged(track));
    const widths = inner.map((arranged) => Math.max(arranged.width, NARROWEST));
    const around = 2 * (MARGIN + BUS);
    const abreast = widths.reduce((sum, width) => sum + width + TRACK_GAP, around - TRACK_GAP);
    this.stacked = this.limit < abreast; // then a track stands below the other
    this.width = this.stacked ? Math.max(...widths) + around : abreast;
    this.tracks = [];
    this.gutters = [];
    this.height = 0;
    for (const group of this.stacked ? inner.map((arranged) => [arranged]) : [inner]) {
      const count = Math.max(...group.map((arranged) => arranged.rows.length));
      const heights = Array.from({ length: count }, (_, row) => most(group.map((arranged) => arranged.heights[row] || 0)));
      const top = this.height;
      let [x, y] = [MARGIN + BUS, top + this.head + MARGIN];
      for (const arranged of group) {
        const width = this.stacked ? this.width - around : widths[this.tracks.length];
        this.settle(arranged, x + (width - arranged.width) / 2, y, heights);
        this.tracks.push({ x, width, top });
        x += width + TRACK_GAP;
      }
      for (const height of heights) {
        this.gutters.push({ top: y, bottom: y + height, gutter: y + height + this.sizes.rowGap / 2 });
        y += height ? height + this.sizes.rowGap : 0;
      }
      this.height = y - this.sizes.rowGap + BUS;
    }
    return this;
  }

  isOpen(id) {
    const box = this.data.boxes[id];
    return box.rows.length > 0 && (!box.framed || this.open.has(id));
  }

  sized(id) {
    const box = this.data.boxes[id];
    if (this.isOpen(id)) {
      const inner = this.arranged(id);
      const [pad, head] = box.framed ? [PAD, this.head] : [0, 0];
      const label = box.framed ? this.textWidth(box.label, this.fonts.name) + 44 : 0;
      const width = Math.max(inner.width + 2 * pad, label);
      return { id, inner, width, height: inner.height + head + pad };
    }
    const names = this.graph.labelLines(id);
    const texts = names.map((text) => this.textWidth(text, this.fonts.name));
    texts[0] += (box.rows.length ? this.sizes.name + 3 : 0) + this.corner(id);
    const subject = box.node === null ? box : this.data.nodes[box.node];
    const types = box.node === null ? ["88 of 88 nodes"] : this.types[box.node].filter((type) => type && !saysOp(box.label, type));
    const values = valueLines(subject, this.sizes.both).map((line) => line.text);
    texts.push(...[...types, ...values].map((text) => this.textWidth(text, this.fonts.type)));
    const first = types.length ? 1 : 0;
    const lines = this.sizes.both ? first + values.length : Math.max(first, values.length);
    return { id, width: Math.max(44, ...texts) + 2 * this.spare.edge, height: this.high(names.length, lines) };
  }

  /* The height of a box with so many lines of its name, and below it. */
  high(names, lines) {
    const { name, type, pad } = this.sizes;
    return pad + names * (name + LEADING) + lines * (type + LEADING);
  }

  /* How wide the numbers of lines in the corner of a box are. */
  corner(id) {
    const text = this.graph.numbers(id);
    return text ? this.textWidth(text, this.fonts.type) + 4 : 0;
  }

  arranged(container) {
    const rows = this.data.boxes[container].rows.map((row) =>
      row.map((entry) =>
        typeof entry === "number" ? this.sized(entry) : { lane: entry, width: LANE, height: 0 },
      ),
    );
    this.link(container, rows);
    rows.forEach((row) => {
      const total = row.reduce((sum, entry) => sum + entry.width + this.spare.gap, -this.spare.gap);
      let x = -total / 2;
      row.forEach((entry) => {
        entry.x = x + entry.width / 2;
        x += entry.width + this.spare.gap;
      });
    });
    for (let sweep = 0; sweep < SWEEPS; sweep++) {
      const order = sweep % 2 ? [...rows].reverse() : rows;
      const side = sweep > SWEEPS - 3 ? null : sweep % 2 ? "below" : "above";
      for (const row of order) {
        const goals = row.map((entry) => this.goal(entry, side));
        const known = goals.filter((goal) => goal.x !== null);
        const mean = known.reduce((sum, goal) => sum + goal.x, 0) / (known.length || 1);
        goals.forEach((goal) => (goal.x = goal.x ?? mean));
        spaced(
          goals.map((goal) => goal.x),
          goals.map((goal) => goal.weight),
          row.map((entry) => entry.width),
          this.spare.gap,
        ).forEach((x, i) => (row[i].x = x));
      }
    }
    const all = rows.flat();
    const start = least(all.map((entry) => entry.x - entry.width / 2));
    all.forEach((entry) => (entry.x -= start));
    for (const row of rows) { // what is wider than the room moves to the left
      const [left, right] = [least(row.map((entry) => entry.x - entry.width / 2)), most(row.map((entry) => entry.x + entry.width / 2))];
      const over = Math.min(left, right + 2 * (MARGIN + BUS) - this.limit);
      if (over > 0) row.forEach((entry) => (entry.x -= over));
    }
    const heights = rows.map((row) => most(row.map((entry) => entry.height)));
    const filled = heights.filter((height) => height > 0).length;
    return {
      container,
      rows,
      heights,
      width: most(all.map((entry) => entry.x + entry.width / 2)),
      height: heights.reduce((sum, height) => sum + height, 0) + this.sizes.rowGap * Math.max(0, filled - 1),
    };
  }

  /* Where an entry would best stand, by those that edges join it to. What only gives or only
   * takes follows the others. */
  goal(entry, side) {
    let [sum, weight] = [0, 0];
    const pull = (others, far) =>
      others.forEach((other) => {
        const force = entry.lane && other.lane ? 4 : other[far].length ? 1 : LITTLE;
        sum += force * other.x;
        weight += force;
      });
    if (side !== "below") pull(entry.above, "above");
    if (side !== "above") pull(entry.below, "below");
    if (weight) return { x: sum / weight, weight };
    const alone = entry.above.length + entry.below.length === 0;
    return { x: alone ? null : entry.x, weight: LITTLE };
  }

  /* Which entries of neighbouring rows an edge joins, through its lanes. */
  link(container, rows) {
    const chains = new Map();
    const at = new Map();
    rows.forEach((row, number) =>
      row.forEach((entry) => {
        Object.assign(entry, { above: [], below: [], row: number });
        if (entry.lane) {
          const key = `${entry.lane[0]}>${entry.lane[1]}`;
          if (!chains.has(key)) chains.set(key, []);
          chains.get(key).push(entry);
        } else at.set(entry.id, entry);
      }),
    );
    const outside = [...chains.values()].map((chain) => chain[0].lane).filter((lane) => lane.includes(-1));
    for (const [a, b] of [...(this.pairs.get(container) || new Map()).values(), ...outside]) {
      const ends = [at.get(a), at.get(b)].filter(Boolean);
      const chain = [...ends, ...(chains.get(`${a}>${b}`) || [])];
      chain.sort((entry, other) => entry.row - other.row);
      for (let i = 1; i < chain.length; i++) {
        if (chain[i].row === chain[i - 1].row) continue;
        chain[i - 1].below.push(chain[i]);
        chain[i].above.push(chain[i - 1]);
      }
    }
  }

  settle(inner, x, y, shared) {
    const heights = shared || inner.heights;
    inner.rows.forEach((row, number) => {
      const height = heights[number];
      for (const entry of row) {
        const left = x + entry.x - entry.width / 2;
        if (entry.lane) {
          const key = `${entry.lane[0]}>${entry.lane[1]}`;
          if (!this.lanes.has(key)) this.lanes.set(key, []);
          this.lanes.get(key).push({ x: x + entry.x, top: y, bottom: y + height });
          continue;
        }
        const top = y + (height - entry.height) / 2;
        const rect = { x: left, y: top, width: entry.width, height: entry.height, row: [y, y + height] };
        this.rects.set(entry.id, rect);
        if (!entry.inner) this.solid.push(rect);
        else {
          const framed = this.data.boxes[entry.id].framed;
          const slack = (entry.width - entry.inner.width) / 2;
          this.settle(entry.inner, left + slack, top + (framed ? this.head : 0), null);
        }
      }
      if (height) y += height + this.sizes.rowGap;
    });
  }
}

/* The box that stands for each node: its own, or the outermost closed scope around it. */
export function visibleBoxes(graph, layout) {
  const visible = new Map();
  graph.boxOf.forEach((id, node) => visible.set(node, graph.ways[id].find((around) => !layout.isOpen(around))));
  return visible;
}
