/* Edges: what leads from box to box in a picture, and what is said of it. */

import { make, round } from "./elements.js";
import { flowedIn } from "./graph.js";

/** @param {import("./data").View} view */
export function drawEdge(view, edge, twin) {
  const { graph, routes } = view;
  const lit = view.selected !== null && edge.ends.includes(view.selected);
  const count = edge.data + edge.control + edge.transfers.length;
  const d = routes.path(edge.a, edge.b, twin);
  const kind = edge.transfers.length ? "transfer" : edge.data ? "data" : "control";
  const cut = graph.data.states[view.state].cut.some(([from, to]) => edge.pairs.some(([a, b]) => a === from && b === to));
  const words = [
    edge.data && `${edge.data} tensor${edge.data > 1 ? "s" : ""}`,
    edge.control && `${edge.control} control dependenc${edge.control > 1 ? "ies" : "y"}`,
    ...edge.transfers.map((transfer) => `${transfer.bytes} sent: ${transfer.title}`),
    cut && "the gradient of a variable stops here",
  ].filter(Boolean);
  const flowed = flowedIn(view) ? carried(graph, edge) : [];
  const arrow = lit ? "-lit" : edge.transfers.length ? "-transfer" : "";
  const group = make(
    "g",
    { class: `edge ${kind}${lit ? " lit" : ""}${cut ? " cut" : ""}`, "data-edge": `${edge.a}>${edge.b}` },
    make("title", {}, [words.join(", "), ...flowed].join(". ")),
    make("path", { d, class: "touch" }),
    make("path", {
      d,
      class: "line",
      "stroke-width": round(1 + Math.min(1.8, Math.log2(count) / 3)),
      "marker-end": `url(#${view.mark}-arrow${arrow})`,
    }),
  );
  const text = edgeLabel(view.graph, edge, d);
  if (text) {
    const { x, y } = middleOf(d);
    group.append(make("text", { x, y: y + 3.5, class: "count" }, text));
  }
  return group;
}

/* The point in the middle of a path. */
function middleOf(d) {
  const path = /** @type {SVGPathElement} */ (make("path", { d }));
  return path.getPointAtLength(path.getTotalLength() / 2);
}

/** What stands beside an edge: the bytes that it sends, or how many tensors it bundles.
 * @param {import("./graph.js").Graph} graph */
export function edgeLabel(graph, edge, path) {
  const count = edge.data + edge.control + edge.transfers.length;
  if (edge.transfers.length) return edge.transfers.map((transfer) => transfer.bytes).join(", ");
  const beside = graph.track(edge.a) === graph.track(edge.b) && path.includes("Q");
  return edge.data && count > 1 && !beside ? String(count) : "";
}

/** The values of the tensors that an edge stands for, each once.
 * @param {import("./graph.js").Graph} graph
 * @param {import("./data").Edge} edge */
export function carried(graph, edge) {
  const sources = [...new Set(edge.pairs.map(([source]) => source))].map((source) => graph.data.nodes[source]);
  return sources.filter((node) => node.data).map((node) => `${node.name} = ${node.data}`);
}
