/* Colours: the class that gives a box its colour, and the legend that says what colours mean. */

import { make } from "./elements.js";
import { DEVICE, HUES } from "./graph.js";

/** What a box consists of for a colour: classes, each with how much of the box it is.
 * @param {import("./graph.js").Graph} graph
 * @param {string} colour
 * @param {number} state
 * @param {number} id of the box
 * @param {number[]} here its nodes that this state has
 * @returns {[name: string, count: number][]} */
export function partsOf(graph, colour, state, id, here) {
  if (colour === "fate") return graph.data.boxes[id].fates.map(([fate, count]) => [`fate-${fate}`, count]);
  if (colour === "line") return graph.linesOf(id).map((line) => [`line-${graph.colourOfLine.get(line)}`, 1]);
  if (colour !== "device") return [];
  const devices = here.map((node) => graph.version(node, state)[DEVICE]).filter(Boolean);
  return [...new Set(devices)].map((device) => [
    `device-${graph.data.legend.device.indexOf(device) % HUES}`,
    devices.filter((other) => other === device).length,
  ]);
}

/* The class of a box for a colour: none for its kind, of which every box has the class. */
export function colourOf(graph, colour, state, id, here) {
  if (colour === "time") return `heat-${graph.data.boxes[id].heat ?? "none"}`;
  if (!["device", "line", "fate"].includes(colour)) return "";
  const parts = partsOf(graph, colour, state, id, here);
  return parts.length > 1 ? `${colour}-many` : parts.length ? parts[0][0] : `${colour}-none`;
}

/** The entries of a legend, as [class of the swatch, text]. `has` says whether a selector finds
 * anything in the picture.
 * @param {import("./graph.js").Graph} graph
 * @param {string} colour
 * @param {(selector: string) => boolean} has
 * @returns {[swatch: string, text: string][]} */
export function legendEntries(graph, colour, has) {
  const words = graph.data.legend;
  /** @type {(classes: string, text: string) => [string, string][]} */
  const drawn = (classes, text) => (has(`.box.${classes}`) ? [[classes.split(":")[0], text]] : []);
  /** @type {[string, string][]} */
  const entries = [];
  if (colour === "kind") words.kind.forEach(([kind, text]) => entries.push(...drawn(`kind-${kind}`, text)));
  if (colour === "device") {
    words.device.forEach((device, i) => entries.push([`device-${i % HUES}`, device]));
    entries.push(...drawn("device-many", "several"), ...drawn("device-none:not(.gone)", "not assigned yet"));
  }
  if (colour === "line") {
    const lines = [...graph.colourOfLine];
    const where = graph.data.file ? `${graph.data.file}:` : "line ";
    lines.forEach(([line, number]) => number !== "more" && entries.push([`line-${number}`, `${number ? "" : where}${line}`]));
    if (lines.at(-1)?.[1] === "more") entries.push(["line-more", "further lines"]);
    entries.push(...drawn("line-many", "several lines"), ...drawn("line-none", "of no line"));
  }
  if (colour === "fate") {
    words.fate.forEach((fate) => entries.push([`fate-${fate}`, fate]));
    entries.push(...drawn("fate-many", "several"));
  }
  if (colour === "time") {
    words.time.forEach((text, i) => entries.push([`heat-${i}`, text]));
    entries.push(...drawn("heat-none", "no time"));
  }
  if (colour === "kind") entries.push(...drawn("bookkeeping", "bookkeeping: not part of a formula"));
  entries.push(...drawn("gone", "gone"), ...drawn("changed", "changed"));
  if (has(".edge.transfer")) entries.push(["transfer", "sent to another device, with its bytes"]);
  if (has(".count:not(.cross, .transfer)")) entries.push(["shape", "on edges: tensor shapes (? is open)"]);
  if (has(".edge.cut")) entries.push(["cross", "the gradient stops here"]);
  return entries;
}

/* The legend of a picture, as list items. */
export function legend(graph, colour, picture) {
  const swatch = (name) => (name === "cross" ? make("b", { class: name }, "×") : name === "shape" ? "" : make("span", { class: `swatch ${name}` }));
  const has = (selector) => picture.querySelector(selector) !== null;
  return legendEntries(graph, colour, has).map(([name, text]) => make("li", {}, swatch(name), text));
}
