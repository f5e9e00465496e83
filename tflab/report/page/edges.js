/* Edges: what leads from box to box in a picture, and what is said of it. */

import { make, round, textWidth } from "./elements.js";

const ALONG = [0.5, 0.35, 0.65, 0.42, 0.58, 0.27, 0.73, 0.2, 0.8, 0.1, 0.9]; // of an edge, where its label may stand
const HIGH = 10; // pixels of a label
const BELOW = 7; // a box is no room for labels, nor the bar below it
const AWAY = 9; // from its edge

/** @param {import("./data").View} view */
export function drawEdge(view, edge) {
  const { routes } = view;
  const lit = view.selected !== null && edge.ends.includes(view.selected);
  const shapes = [...edge.tensors.values()];
  const count = shapes.length + edge.control + edge.transfers.length;
  const d = routes.path(edge.a, edge.b);
  const kind = edge.transfers.length ? "transfer" : shapes.length ? "data" : "control";
  const words = [
    shapes.length && `${shapes.length} tensor${shapes.length > 1 ? "s" : ""}${shapes.some(Boolean) ? ` of ${[...new Set(shapes)].filter(Boolean).join(", ")}` : ""}`,
    edge.control && `${edge.control} control dependenc${edge.control > 1 ? "ies" : "y"}`,
    ...edge.transfers.map((transfer) => `${transfer.bytes} sent: ${transfer.title}`),
    edge.cut && "the gradient stops here",
  ].filter(Boolean);
  const arrow = lit ? "-lit" : edge.transfers.length ? "-transfer" : "";
  return make(
    "g",
    { class: `edge ${kind}${edge.cut ? " cut" : ""}${lit ? " lit" : ""}`, "data-edge": `${edge.a}>${edge.b}` },
    make("title", {}, words.join(", ")),
    make("path", { d, class: "touch" }),
    make("path", {
      d,
      class: "line",
      "stroke-width": round(1 + Math.min(1.8, Math.log2(count) / 3)),
      "marker-end": `url(#${view.mark}-arrow${arrow})`,
    }),
  );
}

/** What edges carry, beside them, the most important first; shapes and counts only where they lie on no box, on no other label, and beside no other edge.
 * @param {import("./data").View} view */
export function labelsOfEdges({ drawn, layout, routes }) {
  const taken = layout.solid.map(({ x, y, width, height }) => ({ x: x - 3, y: y - 2, width: width + 6, height: height + BELOW, edge: null }));
  for (const edge of drawn) taken.push(...routes.points(edge.a, edge.b, ALONG).map(({ x, y }) => ({ x, y, width: 0, height: 0, edge })));
  const labels = [];
  const weight = (edge) => Number(edge.cut) * 4 + Number(edge.transfers.length > 0) * 2 + Number(edge.tensors.size > 1);
  const order = drawn.map((edge) => ({ edge, text: edgeLabel(edge) })).filter(({ text }) => text);
  order.sort((p, q) => weight(q.edge) - weight(p.edge));
  for (const { edge, text } of order) {
    const width = textWidth(text, layout.fonts.type) + 4;
    const places = routes.points(edge.a, edge.b, ALONG).map(({ x, y, upright }) => ({
      x: (upright && !edge.cut ? x + width / 2 + 4 : x) - width / 2,
      y: (upright || edge.cut ? y : y - AWAY) - HIGH / 2,
      width,
      height: HIGH,
    }));
    const free = places.find((rect) => !taken.some((other) => other.edge !== edge && overlap(rect, other))) ?? (weight(edge) > 1 ? places[0] : null);
    if (!free) continue;
    taken.push({ ...free, edge: null });
    const kind = edge.cut ? "cross" : edge.transfers.length ? "transfer" : "";
    labels.push(make("text", { x: round(free.x + width / 2), y: round(free.y + HIGH - 1), class: `count ${kind}` }, text));
  }
  return labels;
}

/** @typedef {{ x: number, y: number, width: number, height: number }} Rect
 * @param {Rect} p
 * @param {Rect} q */
export const overlap = (p, q) => p.x < q.x + q.width && q.x < p.x + p.width && p.y < q.y + q.height && q.y < p.y + p.height;

/** What stands beside an edge: the bytes that it sends, or the shapes of its tensors.
 * @param {import("./data").Edge} edge */
export function edgeLabel(edge) {
  if (edge.cut) return "×";
  if (edge.transfers.length) return edge.transfers.map((transfer) => transfer.bytes).join(", ");
  const shapes = [...edge.tensors.values()];
  if (!shapes.length) return "";
  const [shape, other] = new Set(shapes);
  if (shapes.length < 2) return Number(shape) < 2 ? "" : shape; // which would read like a count
  if (shape && other === undefined) return `${shapes.length} × ${shape}`;
  return shapes.length < 3 && shapes.every((one) => !(Number(one) < 2)) ? `${shape}, ${other}` : `${shapes.length} tensors`;
}
