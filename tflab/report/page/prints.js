/* Prints: paper has no controls, so it gets a drawing of each stop, with its scopes closed, and
 * what its colours mean. */

import { make, nodesOf } from "./elements.js";

/** @param {import("./viewer.js").Viewer} viewer */
export function printable(viewer) {
  const { open, state, selected, chosen, asking, mark, zoom, data } = viewer;
  Object.assign(viewer, { open: new Set(), selected: null, chosen: "stage", asking: false });
  const figures = data.stops.map((stop, number) => {
    viewer.state = stop.last;
    viewer.mark = `${mark}-print-${number}`; // paper hides the screen's drawing, and its arrowheads
    viewer.arrange();
    const svg = viewer.part("paper").firstElementChild;
    const words = `${stop.title}: ${nodesOf(data.states[stop.last].count)}`;
    const meaning = make("ul", { class: "legend" }, ...viewer.part("legend").children);
    return make("figure", {}, make("figcaption", {}, words), svg, meaning);
  });
  viewer.part("prints").replaceChildren(...figures);
  Object.assign(viewer, { open, state, selected, chosen, asking, mark, zoom });
  viewer.arrange();
}
