/* Table: the nodes of a state as rows, for those who cannot see the drawing. */

import { make, nodesOf, pieces } from "./elements.js";
import { DEVICE, FIRST, INPUTS, OP, valueLines, flowedIn } from "./graph.js";

const HEADS = ["node", "op", "device", "takes", "value", "in this state"];

export class NodeTable {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.details = /** @type {HTMLDetailsElement} */ (viewer.part("table"));
    this.details.addEventListener("toggle", () => this.show());
  }

  /* Rows are made only where the reader wants them. */
  show() {
    const { viewer, details } = this;
    if (!details.open) return;
    const { data, graph, state } = viewer;
    const rows = rowsOf(graph, state).map(({ node, cells }) => {
      const name = make("button", { type: "button" }, ...pieces(data.nodes[node].name));
      name.addEventListener("click", () => viewer.select(node, true));
      const value = flowedIn(viewer) ? valueLines(data.nodes[node], true).map((line) => line.text).join(", ") : "";
      const [op, device, takes, change] = cells;
      return make("tr", {}, make("th", { scope: "row" }, name), ...[op, device, takes, value, change].map((cell) => make("td", {}, ...pieces(cell))));
    });
    const head = make("tr", {}, ...HEADS.map((text) => make("th", { scope: "col" }, text)));
    const caption = make("caption", {}, `${data.states[state].title}: ${nodesOf(data.states[state].count)}`);
    viewer.part("rows-of-nodes").replaceChildren(make("table", {}, caption, make("thead", {}, head), make("tbody", {}, ...rows)));
  }
}

/** The nodes of a state, and those that leave in it: op, device, inputs and what the state does to each.
 * @param {import("./graph.js").Graph} graph
 * @param {number} state */
export function rowsOf(graph, state) {
  const { nodes, states } = graph.data;
  const [leaving, touched] = [new Set(states[state].gone), new Set(states[state].touched)];
  return nodes.flatMap((_, node) => {
    const version = graph.version(node, state);
    if (leaving.has(node)) return [{ node, cells: ["", "", "", "removed"] }];
    if (!version) return [];
    const first = nodes[node].versions[0][FIRST] === state && state > 0;
    const change = first ? "new" : touched.has(node) && state > 0 ? "changed" : "";
    const takes = version[INPUTS].map((input) => nodes[input].name).join(", ");
    return [{ node, cells: [version[OP], version[DEVICE], takes, change] }];
  });
}
