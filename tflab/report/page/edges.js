/* Edges: what leads from box to box in a picture, and what is said of it. */

import { make, round } from "./elements.js";
import { OP, flowedIn } from "./graph.js";
import { standInNotes } from "./colours.js";
import { sketch } from "./sketch.js";

/** @param {import("./data").View} view */
export function drawEdge(view, edge, twin) {
  const { graph, routes } = view;
  const lit = view.selected !== null && edge.ends.includes(view.selected);
  const count = edge.data + edge.control + edge.transfers.length;
  const d = routes.path(edge.a, edge.b, twin);
  const notes = standInNotes(graph, [edge]);
  let kind = edge.data ? "data" : "control";
  if (edge.transfers.length) kind = "transfer";
  if (notes.length) kind = "data merged";
  const words = [
    edge.data && `${edge.data} tensor${edge.data > 1 ? "s" : ""}`,
    edge.control && `${edge.control} control dependenc${edge.control > 1 ? "ies" : "y"}`,
    ...edge.transfers.map((transfer) => `${transfer.bytes} sent: ${transfer.title}`),
  ].filter(Boolean);
  const flowed = flowedIn(view) ? carried(graph, edge) : [];
  const arrow = lit ? "-lit" : edge.transfers.length ? "-transfer" : notes.length ? "-merged" : "";
  const group = sketch(
    "g",
    { class: `edge ${kind}${lit ? " lit" : ""}`, "data-edge": `${edge.a}>${edge.b}` },
    sketch("title", {}, [words.join(", "), ...flowed, ...notes].join(". ")),
    sketch("path", { d, class: "touch" }),
    sketch("path", {
      d,
      class: "line",
      "stroke-width": round(1 + Math.min(1.8, Math.log2(count) / 3)),
      "marker-end": `url(#${view.mark}-arrow${arrow})`,
    }),
  );
  const text = edgeLabel(view, edge, d, notes.length);
  if (text) {
    const { x, y } = middleOf(d);
    group.children.push(sketch("text", { x, y: y + (notes.length ? 14 : 3.5), class: "count" }, text));
  }
  return group;
}

/* The point in the middle of a path. */
function middleOf(d) {
  const path = /** @type {SVGPathElement} */ (make("path", { d }));
  return path.getPointAtLength(path.getTotalLength() / 2);
}

/** What stands beside an edge: the bytes that it sends, or what it shares, or how many it bundles.
 * @param {import("./data").View} view */
export function edgeLabel({ graph, state }, edge, path, merged) {
  const count = edge.data + edge.control + edge.transfers.length;
  if (edge.transfers.length) return edge.transfers.map((transfer) => transfer.bytes).join(", ");
  if (merged) return edge.pairs.every(([source]) => graph.version(source, state)[OP] === "Const") ? "shared constant" : "shared";
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
