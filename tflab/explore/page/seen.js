/* Seen: how a drawing is seen stays when the next one takes its place. */

/** The state to show: the one that the reader wants, or the last of its stage, or the last of all.
 * @param {{ stage: string, title: string }[]} states
 * @param {{ stage: string, title: string } | null} goal */
export function stateOf(states, goal) {
  const last = states.length - 1;
  if (!goal) return last;
  const same = states.findIndex((state) => state.stage === goal.stage && state.title === goal.title);
  if (same >= 0) return same;
  const near = states.map((state) => state.stage).lastIndexOf(goal.stage);
  return near >= 0 ? near : last;
}

/** The state that a viewer shows, as a goal; none where it is the last, whatever that is.
 * @param {import("../../report/page/viewer.js").Viewer} viewer */
export function stateSeen({ state, data }) {
  const { stage, title } = data.states[state];
  return state === data.states.length - 1 ? null : { stage, title };
}

/** How a viewer is seen, by names: in another graph, numbers stand for others.
 * @param {import("../../report/page/viewer.js").Viewer} viewer */
export function seenAs(viewer) {
  const paper = viewer.part("paper");
  return {
    chosen: viewer.chosen,
    open: [...viewer.open].map((id) => wayOf(viewer, id)),
    zoom: viewer.zoom,
    fitted: viewer.frame.fitted,
    scroll: [paper.scrollLeft, paper.scrollTop],
    selected: viewer.selected === null ? null : viewer.data.nodes[viewer.selected].name,
  };
}

/** The labels of the boxes around a box and of itself.
 * @param {import("../../report/page/viewer.js").Viewer} viewer
 * @param {number} id */
function wayOf(viewer, id) {
  return viewer.graph.ways[id].map((around) => viewer.data.boxes[around].label).join("/");
}

/** @param {import("../../report/page/viewer.js").Viewer} viewer
 * @param {ReturnType<typeof seenAs>} before
 * @param {Map<string, number>} places node -> its number */
export function restore(viewer, before, places) {
  viewer.open = new Set(viewer.data.boxes.flatMap((box, id) => (box.rows.length && before.open.includes(wayOf(viewer, id)) ? [id] : [])));
  viewer.frame.fitted = before.fitted;
  viewer.arrange();
  if (before.fitted) viewer.frame.fit();
  else viewer.frame.scale(before.zoom);
  if (before.selected !== null && places.has(before.selected)) {
    viewer.selected = places.get(before.selected);
    viewer.show();
    viewer.draw();
    viewer.frame.refit();
  }
  viewer.part("paper").scrollTo(...before.scroll);
}
