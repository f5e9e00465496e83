/* Graph: the nodes in each state of the graph, and the boxes that they are in. */

// What stands where in a version of a node, as Python sends it
export const [FIRST, LAST, OP, DEVICE, INPUTS, CONTROLS, SHAPES, OUTPUTS] = /** @type {const} */ ([0, 1, 2, 3, 4, 5, 6, 7]);

const BREAK = 16; // letters in a line of a label
export const HUES = 8; // that can be told apart; further lines share a neutral colour, and have their number

export class Graph {
  /** @param {import("./data").GraphData} data */
  constructor(data) {
    this.data = data;
    this.boxOf = new Map(data.boxes.flatMap((box, id) => (box.node === null ? [] : [[box.node, id]])));
    this.ways = []; // box -> the boxes around it from the outside in, and itself
    data.boxes.forEach((box, id) => {
      this.ways[id] = box.parent === null ? [id] : [...this.ways[box.parent], id];
    });
    this.inside = data.boxes.map(() => []); // box -> the nodes in it
    this.boxOf.forEach((id, node) => this.ways[id].forEach((around) => this.inside[around].push(node)));
    const lines = [...new Set(data.lines.flat())].sort((a, b) => a - b);
    /** @type {Map<number, number | "more">} */
    this.colourOfLine = new Map(lines.map((line, number) => [line, number < HUES ? number : "more"])); // of the program
    this.linesIn = new Map(); // box -> lines, found once
    this.handing = new Set(data.transfers.flatMap((transfer) => [transfer.send, transfer.recv]));
  }

  /** The lines of the program whose work a box does, in their order.
   * @param {number} id */
  linesOf(id) {
    if (!this.linesIn.has(id)) {
      const lines = new Set(this.inside[id].flatMap((node) => this.data.lines[node]));
      this.linesIn.set(id, [...lines].sort((a, b) => a - b));
    }
    return this.linesIn.get(id);
  }

  /** The numbers of its lines, for the corner of a box: `4`, `4,7`, or `4–9` of more than two.
   * @param {number} id */
  numbers(id) {
    const lines = this.linesOf(id);
    return lines.length > 2 ? `${lines[0]}–${lines.at(-1)}` : lines.join(",");
  }

  /** The label of a box as lines of text, which break after scopes.
   * @param {number} id */
  labelLines(id) {
    const lines = [""];
    for (const part of this.data.boxes[id].label.split(/(?<=\/)/)) {
      if (lines.at(-1) && (lines.at(-1) + part).length > BREAK) lines.push("");
      lines[lines.length - 1] += part;
    }
    return lines;
  }

  /** The version of a node that stands in a state; none where it is not in the graph.
   * @param {number} node
   * @param {number} state */
  version(node, state) {
    return this.data.nodes[node].versions.find((version) => version[FIRST] <= state && state <= version[LAST]);
  }

  /** The device of a node in a version; of one that hands a tensor to another device, its op too.
   * @param {number} node
   * @param {import("./data").Version} version */
  placed(node, version) {
    return this.handing.has(node) ? `${version[OP]}, ${version[DEVICE]}` : version[DEVICE];
  }

  /* Whether a node was in the graph in this state or before. */
  seen(node, state) {
    return this.data.nodes[node].versions[0]?.[FIRST] <= state; // false of a node that never was
  }

  track(id) {
    return this.data.tracks.indexOf(this.ways[id][0]);
  }

  /* The box around both, and the two boxes in it that the ends of an edge are in. */
  meeting(a, b) {
    const [ofA, ofB] = [this.ways[a], this.ways[b]];
    let depth = 0;
    while (depth < ofA.length && depth < ofB.length && ofA[depth] === ofB[depth]) depth++;
    return [depth ? ofA[depth - 1] : null, ofA[depth], ofB[depth]];
  }

  /** Edges between visible boxes in a state, those of closed scopes bundled. `visible` gives the
   * box that stands for a node.
   * @param {number} state
   * @param {(node: number) => number} visible
   * @returns {import("./data").Edge[]} */
  edges(state, visible) {
    const bundles = new Map();
    const bundle = (source, target) => {
      const [a, b] = [visible(source), visible(target)];
      if (a === b) return null;
      const key = `${a}>${b}`;
      if (!bundles.has(key)) bundles.set(key, { a, b, tensors: new Map(), control: 0, ends: [], transfers: [], cut: false });
      const edge = bundles.get(key);
      edge.ends.push(source, target);
      return edge;
    };
    const versions = this.data.nodes.map((_, node) => this.version(node, state));
    const { cut } = this.data.states[state];
    versions.forEach((version, node) => {
      if (!version) return;
      version[INPUTS].forEach((source, place) => {
        const edge = versions[source] && bundle(source, node);
        if (!edge) return;
        edge.tensors.set(`${source}:${version[OUTPUTS][place]}`, version[SHAPES][place]);
        edge.cut ||= cut.some(([from, to]) => from === source && to === node);
      });
      for (const source of version[CONTROLS]) {
        const edge = versions[source] && bundle(source, node);
        if (edge) edge.control++;
      }
    });
    for (const transfer of this.data.transfers) {
      if (!versions[transfer.send] || !versions[transfer.recv]) continue;
      const edge = bundle(transfer.send, transfer.recv);
      if (edge) edge.transfers.push(transfer);
    }
    return [...bundles.values()];
  }
}

/** Whether a label says what an op is: `mul_1` of a Mul, `conv/Relu` of a Relu.
 * @param {string} label
 * @param {string} op */
export function saysOp(label, op) {
  return label.slice(label.lastIndexOf("/") + 1).replace(/_\d+$/, "").toLowerCase() === op.toLowerCase();
}

/** Whether a view shows the values of the recorded step: in the states that have them, unless the
 * page asks for them.
 * @param {import("./data").View} view */
export function flowedIn(view) {
  return view.graph.data.states[view.state].flowed && !view.asking;
}

/** What the program's values say of a node, or of the scope of its name: its data and its gradient;
 * that it has no value, only where there is room for it.
 * @param {import("./data").Values} node
 * @param {boolean} room */
export function valueLines(node, room) {
  const lines = [];
  if (node.data) lines.push({ kind: "type value", text: node.data });
  if (node.missing && room) lines.push({ kind: "type", text: `no value: ${node.missing}` });
  if (node.grad) lines.push({ kind: "type grad", text: `grad ${node.grad}` });
  return lines;
}
