/* Edges: what leads from box to box in a picture, and what is said of it. */

import { make, round, textWidth } from "./elements.js";

const ALONG = Array.from({ length: 19 }, (_, i) => 0.05 * (i + 1)); // of an edge, where its label may stand
const BELOW = 7; // a box is no room for labels, nor the bar below it
const [APART, BESIDE] = [4, 6]; // from its edge to a label above or below it, and on either side

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

/** What edges carry, beside them, the most important first; shapes and counts only where they lie on no box, label or edge.
 * @param {import("./data").View} view */
export function labelsOfEdges({ drawn, graph, layout, routes }) {
  const taken = layout.solid.map(({ x, y, width, height }) => ({ x: x - 3, y: y - 2, width: width + 6, height: height + BELOW, edge: null }));
  for (const edge of drawn) {
    const points = routes.points(edge.a, edge.b, ALONG);
    points.forEach(({ x, y }, i) => {
      const next = points[i + 1] ?? { x, y };
      taken.push({ x: Math.min(x, next.x), y: Math.min(y, next.y), width: Math.abs(next.x - x), height: Math.abs(next.y - y), edge });
    });
  }
  const labels = [];
  const height = layout.sizes.type - 3;
  const weight = (edge) => Number(edge.cut) * 4 + Number(edge.transfers.length > 0) * 2 + Number(edge.tensors.size > 1);
  const order = drawn.map((edge) => ({ edge, text: edgeLabel(edge) })).filter(({ text }) => text);
  order.sort((p, q) => weight(q.edge) - weight(p.edge));
  for (const { edge, text } of order) {
    if (layout.stacked && weight(edge) < 2 && graph.track(edge.a) !== graph.track(edge.b)) continue; // its way is that of others
    const width = textWidth(text, layout.fonts.type) + 4;
    const at = (x, y) => ({ x: x - width / 2, y: y - height / 2, width, height });
    const [aside, above] = [width / 2 + BESIDE, height / 2 + APART];
    const places = fromTheMiddle(routes.points(edge.a, edge.b, ALONG)).flatMap(({ x, y, upright }) => {
      if (edge.cut) return [at(x, y)];
      return upright ? [at(x + aside, y), at(x - aside, y)] : [at(x, y - above), at(x, y + above)];
    });
    const free = places.find((rect) => !taken.some((other) => !(edge.cut && other.edge === edge) && overlap(rect, other))) ?? (weight(edge) > 1 ? places[0] : null);
    if (!free) continue;
    taken.push({ ...free, edge: null });
    const kind = edge.cut ? "cross" : edge.transfers.length ? "transfer" : "";
    labels.push(make("text", { x: round(free.x + width / 2), y: round(free.y + height - 1), class: `count ${kind}` }, text));
  }
  return labels;
}

const fromTheMiddle = (points) => points.map((_, i) => points[(points.length >> 1) + (i % 2 ? -1 : 1) * Math.ceil(i / 2)]);

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
  if (shapes.length < 2) return Number(shape) < 2 || shape === "?" ? "" : shape; // which would say little
  if (shape && other === undefined) return `${shapes.length} × ${shape}`;
  return shapes.length < 3 && shapes.every((one) => !(Number(one) < 2)) ? `${shape}, ${other}` : `${shapes.length} tensors`;
}
