/* Layout: sizes and places for boxes, and paths for the edges between them.
 *
 * The order of boxes comes with the data. Scopes can be open or closed, so their sizes are found
 * here, from the inside out, and then their places, from the outside in.
 */

// What stands where in a version of a node, as Python sends it
const [FIRST, LAST, OP, DEVICE, INPUTS, CONTROLS] = [0, 1, 2, 3, 4, 5];
const NODE_GAP = 14; // between boxes of a row
const ROW_GAP = 24;
const TRACK_GAP = 64; // room for the edges between forward, backward and update
const BUS = 14; // from a track to the edges beside it
const LANE = 8; // width of a long edge in a row that it passes
const PAD = 12; // around what is in an open scope
const HEAD = 26; // its label
const MARGIN = 16;
const SWEEPS = 24; // over the rows, each time with straighter edges
const LITTLE = 0.1; // the weight of constants and the like in finding places

/* Positions closest to those desired, in their order and a gap apart: weighted isotonic
 * regression by the pool-adjacent-violators algorithm. */
function spaced(desired, weights, sizes, gap) {
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

class Layout {
  constructor(data, fonts) {
    this.data = data;
    this.fonts = fonts;
    this.boxOf = new Map(data.boxes.flatMap((box, id) => (box.node === null ? [] : [[box.node, id]])));
    this.types = data.nodes.map((node) => new Set(node.versions.map((version) => version[OP])));
    const pairs = new Map(); // container -> pairs of boxes in it that edges join
    data.nodes.forEach((node, number) => {
      for (const version of node.versions) {
        for (const source of [...version[INPUTS], ...version[CONTROLS]]) this.joined(pairs, source, number);
      }
    });
    this.pairs = pairs;
  }

  ancestors(id) {
    const way = [id];
    while (this.data.boxes[way[0]].parent !== null) way.unshift(this.data.boxes[way[0]].parent);
    return way;
  }

  /* The box around both, and the two boxes in it that the ends of an edge are in. */
  meeting(a, b) {
    const ofA = this.ancestors(a);
    const ofB = this.ancestors(b);
    let depth = 0;
    while (ofA[depth] === ofB[depth] && depth < ofA.length && depth < ofB.length) depth++;
    return [depth ? ofA[depth - 1] : null, ofA[depth], ofB[depth]];
  }

  joined(pairs, source, target) {
    if (!this.boxOf.has(source) || !this.boxOf.has(target)) return;
    const [around, a, b] = this.meeting(this.boxOf.get(source), this.boxOf.get(target));
    if (around === null || a === undefined || b === undefined) return;
    if (!pairs.has(around)) pairs.set(around, new Map());
    pairs.get(around).set(`${a}>${b}`, [a, b]);
  }

  /* Sizes from the inside out, then places from the outside in. */
  run(open) {
    this.open = open;
    this.rects = new Map();
    this.lanes = new Map();
    this.solid = []; // what an edge must not pass behind
    const inner = this.data.tracks.map((track) => this.arranged(track));
    const count = Math.max(...inner.map((arranged) => arranged.rows.length));
    const heights = Array.from({ length: count }, (_, row) =>
      Math.max(0, ...inner.map((arranged) => arranged.heights[row] || 0)),
    );
    let x = MARGIN;
    this.tracks = inner.map((arranged, index) => {
      const track = { x, width: Math.max(arranged.width, 120) };
      const shift = x + (track.width - arranged.width) / 2;
      this.settle(arranged, shift, HEAD + MARGIN, heights);
      x += track.width + TRACK_GAP;
      return track;
    });
    this.width = x - TRACK_GAP + BUS + 8;
    let y = HEAD + MARGIN;
    this.gutters = heights.map((height) => {
      const top = y;
      y += height ? height + ROW_GAP : 0;
      return { top, bottom: top + height, gutter: top + height + ROW_GAP / 2 };
    });
    this.height = y - ROW_GAP + MARGIN;
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
      const [pad, head] = box.framed ? [PAD, HEAD] : [0, 0];
      const least = box.framed ? textWidth(shortened(box.label), this.fonts.name) + 44 : 0;
      const width = Math.max(inner.width + 2 * pad, least);
      return { id, inner, width, height: inner.height + head + pad };
    }
    const texts = [textWidth(shortened(box.label), this.fonts.name) + (box.rows.length ? 18 : 0)];
    if (box.node === null) texts.push(textWidth("88 of 88 nodes", this.fonts.type));
    else for (const type of this.types[box.node]) {
      if (type !== box.label) texts.push(textWidth(type, this.fonts.type));
    }
    return { id, width: Math.max(44, ...texts) + 20, height: texts.length > 1 ? 38 : 26 };
  }

  arranged(container) {
    const rows = this.data.boxes[container].rows.map((row) =>
      row.map((entry) =>
        typeof entry === "number" ? this.sized(entry) : { lane: entry, width: LANE, height: 0 },
      ),
    );
    this.link(container, rows);
    rows.forEach((row) => {
      const total = row.reduce((sum, entry) => sum + entry.width + NODE_GAP, -NODE_GAP);
      let x = -total / 2;
      row.forEach((entry) => {
        entry.x = x + entry.width / 2;
        x += entry.width + NODE_GAP;
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
          NODE_GAP,
        ).forEach((x, i) => (row[i].x = x));
      }
    }
    const all = rows.flat();
    const start = Math.min(...all.map((entry) => entry.x - entry.width / 2));
    all.forEach((entry) => (entry.x -= start));
    const heights = rows.map((row) => Math.max(0, ...row.map((entry) => entry.height)));
    const filled = heights.filter((height) => height > 0).length;
    return {
      container,
      rows,
      heights,
      width: all.length ? Math.max(...all.map((entry) => entry.x + entry.width / 2)) : 0,
      height: heights.reduce((sum, height) => sum + height, 0) + ROW_GAP * Math.max(0, filled - 1),
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
          chains.set(key, [...(chains.get(key) || []), entry]);
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
          this.settle(entry.inner, left + slack, top + (framed ? HEAD : 0), null);
        }
      }
      if (height) y += height + ROW_GAP;
    });
  }

  trackOf(id) {
    return this.data.tracks.indexOf(this.ancestors(id)[0]);
  }

  /* A path from box to box: along its lanes, or between the tracks. */
  path(a, b) {
    const from = this.rects.get(a);
    const to = this.rects.get(b);
    const tracks = [this.trackOf(a), this.trackOf(b)];
    if (tracks[0] !== tracks[1]) return this.across(from, to, tracks);
    const lanes = this.lanesOf(a, b);
    const middle = (rect) => rect.x + rect.width / 2;
    let sign = 0;
    if (from.y + from.height <= to.y) sign = 1;
    else if (to.y + to.height <= from.y) sign = -1;
    if (!sign) {
      const right = from.x < to.x ? 1 : -1;
      const start = [right > 0 ? from.x + from.width : from.x, from.y + from.height / 2];
      const end = [right > 0 ? to.x : to.x + to.width, to.y + to.height / 2];
      return curve([start, end], false);
    }
    if (!lanes.length && this.skips(from, to)) return this.around(from, to, tracks[0]);
    lanes.sort((p, q) => sign * (p.top - q.top));
    const points = [[middle(from), sign > 0 ? from.y + from.height : from.y]];
    for (const lane of lanes) {
      points.push([lane.x, sign > 0 ? lane.top : lane.bottom], [lane.x, sign > 0 ? lane.bottom : lane.top]);
    }
    points.push([middle(to), sign > 0 ? to.y : to.y + to.height]);
    return curve(points, true);
  }

  /* All lanes that an edge goes through: out of its scopes, on to the other, into its scopes. */
  lanesOf(a, b) {
    const [around, boxOfA, boxOfB] = this.meeting(a, b);
    const deeper = (id) => this.ancestors(id).slice(this.ancestors(id).indexOf(around) + 2);
    const keys = [...deeper(a).map((id) => `${id}>-1`), `${boxOfA}>${boxOfB}`, ...deeper(b).map((id) => `-1>${id}`)];
    return keys.flatMap((key) => this.lanes.get(key) || []);
  }

  /* Whether an edge without lanes would pass behind the boxes of other rows. */
  skips(from, to) {
    const [upper, lower] = from.y < to.y ? [from, to] : [to, from];
    return this.gutters.filter((row) => row.top > upper.y + upper.height && row.bottom < lower.y && row.bottom > row.top).length > 0;
  }

  /* Along the edge of a track, beside its boxes. */
  around(from, to, track) {
    const way = to.y > from.y ? 1 : -1; // down on the left, up on the right
    const { x: left, width } = this.tracks[track];
    const x = way > 0 ? left - BUS : left + width + BUS;
    const start = [from.x + (way > 0 ? 0 : from.width), from.y + from.height / 2];
    const end = [to.x + (way > 0 ? 0 : to.width), to.y + to.height / 2];
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
    if (b < a) return curve([[from.x, from.y + from.height / 2], [to.x + to.width, to.y + to.height / 2]], false);
    const start = this.way(from, a, 1);
    const end = this.way(to, b, -1);
    const points = [start.gate, end.gate];
    if (b - a > 1) {
      const row = this.gutters.find((row) => row.bottom >= to.y) || this.gutters.at(-1);
      const crossed = this.tracks[1];
      points.splice(1, 0, [crossed.x - TRACK_GAP / 4, row.gutter]);
      points.splice(2, 0, [crossed.x + crossed.width + TRACK_GAP / 4, row.gutter]);
    }
    return start.path + curve(points, false).replace(start.path ? /^M[^CL]*/ : "", "") + end.path;
  }

  /* How an edge gets from a box to the side of its track (1: right, -1: left), or back. */
  way(rect, track, side) {
    const middle = rect.y + rect.height / 2;
    const edge = side > 0 ? rect.x + rect.width : rect.x;
    const [left, right] = [this.tracks[track].x, this.tracks[track].x + this.tracks[track].width];
    const blocked = this.solid.some(
      (box) =>
        box.y < middle && middle < box.y + box.height &&
        (side > 0 ? box.x >= edge && box.x < right : box.x + box.width <= edge && box.x >= left),
    );
    if (!blocked) return { path: "", gate: [edge, middle] };
    const above = (track === 1) === side > 0; // gradients flow up
    const gap = above ? rect.row[0] - ROW_GAP / 2 : rect.row[1] + ROW_GAP / 2;
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
function curve(points, upright) {
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

const round = (value) => Math.round(value * 10) / 10;

function rounded(rect) {
  return { x: round(rect.x), y: round(rect.y), width: round(rect.width), height: round(rect.height) };
}
