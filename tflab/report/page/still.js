/* Still: a graph in its last state, without controls, to be compared with the one beside it. */

import { Graph } from "./graph.js";
import { Layout, READING, visibleBoxes } from "./layout.js";
import { Routes } from "./routes.js";
import { legend } from "./colours.js";
import { drawPicture, inert } from "./picture.js";
import { render } from "./sketch.js";
import { LEAST } from "./frame.js";

/** @param {HTMLElement} root
 * @param {import("./data").GraphData} data */
export function still(root, data) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const graph = new Graph(data);
  const layout = new Layout(graph, getComputedStyle(root).fontFamily, READING).run(new Set());
  const visible = visibleBoxes(graph, layout);
  const state = data.states.length - 1;
  const view = {
    graph,
    layout,
    routes: new Routes(layout),
    drawn: graph.edges(state, (node) => visible.get(node)),
    state,
    colour: root.dataset.colour,
    zoom: 1,
    mark: root.id,
    selected: null,
    current: null,
    compared: true,
  };
  const picture = render(drawPicture(view));
  inert(picture);
  part("sheet").replaceChildren(picture);
  part("legend").replaceChildren(...legend(graph, view.colour, picture));
  const fit = () => {
    const zoom = Math.max(LEAST, Math.min(1, part("sheet").clientWidth / layout.width));
    picture.setAttribute("width", layout.width * zoom);
    picture.setAttribute("height", layout.height * zoom);
  };
  fit();
  window.addEventListener("resize", fit);
}
