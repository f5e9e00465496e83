/* History: what the panel beside a drawing says of a node, every name in it a link. */

import { make, pieces } from "./elements.js";
import { valueLines } from "./graph.js";

/** @param {import("./viewer.js").Viewer} viewer */
export function showHistory(viewer) {
  const node = viewer.data.nodes[viewer.selected];
  const panel = viewer.part("panel");
  const closing = make("button", { type: "button", class: "close", "aria-label": "Close the history" }, "×");
  closing.addEventListener("click", () => viewer.leave());
  panel.replaceChildren(
    closing,
    make("h4", {}, ...pieces(node.name)),
    make("p", { class: "op" }, node.op),
    ...valueLines(node, true).map((line) => make("p", { class: "op" }, line.text)),
    ...node.history.flatMap((section) => sectionOf(viewer, section)),
    ...(node.times.rows.length ? timesOf(node.times) : []),
    ...(node.code && viewer.listing ? [make("h5", {}, link(viewer, "Generated code, as HLO, LLVM IR and instructions", "link", () => viewer.listing(node.name)))] : []),
  );
  viewer.part("said").textContent = `${node.name}, ${node.op}`; // and not its whole history
}

function sectionOf(viewer, section) {
  const title = section.state === null ? section.title : link(viewer, section.title, "state", () => viewer.go(section.state));
  const heading = make("h5", {}, title, ...(section.about ? [" ", make("span", {}, section.about)] : []));
  const items = section.lines.map((line) => make("li", {}, ...line.map((part) => phrase(viewer, part))));
  return [heading, make("ul", {}, ...items)];
}

function phrase(viewer, part) {
  if (typeof part === "string") return part;
  if (part.code !== undefined) return make("code", {}, part.code);
  if (part.node !== undefined) return link(viewer, part.text, "link", () => viewer.select(part.node, true));
  return link(viewer, part.text, "state", () => viewer.go(part.state));
}

function link(viewer, text, kind, action) {
  const element = make("a", { href: `#${viewer.root.id}`, class: kind }, ...pieces(text));
  element.addEventListener("click", (event) => {
    event.preventDefault();
    action();
  });
  return element;
}

/* A column for each batch size. */
function timesOf(times) {
  const row = (cells, tag) => make("tr", {}, make("th", {}, cells[0]), ...cells.slice(1).map((cell) => make(tag, {}, cell)));
  const head = make("thead", {}, row(times.rows[0], "th"));
  const body = make("tbody", {}, ...times.rows.slice(1).map((cells) => row(cells, "td")));
  return [make("h5", {}, times.title), make("div", { class: "scroll" }, make("table", {}, head, body))];
}
