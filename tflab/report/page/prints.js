/* Prints: paper has no controls, so it gets a drawing of each stop, with its scopes closed. */

function printable(viewer) {
  const { open, state, selected, chosen, data } = viewer;
  viewer.open = new Set();
  viewer.selected = null;
  viewer.chosen = "stage";
  const figures = data.stops.map((stop, number) => {
    viewer.state = stop.last;
    viewer.arrange();
    const svg = viewer.part("paper").firstElementChild;
    svg.removeAttribute("width");
    svg.removeAttribute("height");
    const words = `${number + 1} ${stop.title}: ${data.states[stop.last].count} nodes`;
    return make("figure", {}, make("figcaption", {}, words), svg);
  });
  viewer.part("prints").replaceChildren(...figures);
  Object.assign(viewer, { open, state, selected, chosen });
  viewer.arrange();
}
