/* Colours: the class that gives a box its colour, and the legend that says what colours mean. */

const DEVICES = 6; // colours of devices; more of them share these
const FATES = ["executed", "fused", "merged", "folded", "removed", "unreached", "compiled", "runtime"];
const KINDS = ["forward", "gradient", "update", "runtime"];
const KIND_WORDS = ["forward", "gradient", "update", "made by the runtime"];

function kindOf(graph, id) {
  const kinds = new Set(graph.inside[id].map((node) => graph.data.nodes[node].kind));
  kinds.delete(3);
  return `kind-${KINDS[kinds.size ? Math.min(...kinds) : 3]}`;
}

/* The class of a box for a colour; `here` are its nodes that this state has. */
function colourOf(graph, colour, state, id, here) {
  if (colour === "time") {
    const { heat } = graph.data.boxes[id];
    return heat === undefined ? "heat-none" : `heat-${heat}`;
  }
  if (colour === "device") {
    const devices = new Set(here.map((node) => graph.version(node, state)[DEVICE]).filter(Boolean));
    if (!devices.size) return "device-none";
    return devices.size > 1 ? "device-many" : `device-${graph.data.devices.indexOf([...devices][0]) % DEVICES}`;
  }
  if (colour === "fate") {
    const fates = new Set(graph.inside[id].map((node) => graph.data.nodes[node].fate));
    return fates.size > 1 ? "fate-many" : `fate-${[...fates][0]}`;
  }
  return "";
}

/* How many nodes in a box had each fate, in the order of the legend. */
function fatesIn(graph, id) {
  const fates = graph.inside[id].map((node) => graph.data.nodes[node].fate);
  return FATES.map((fate) => [fate, fates.filter((own) => own === fate).length]).filter(([, count]) => count);
}

/* The entries of a legend for what is in a picture, as list items. */
function legend(graph, colour, picture) {
  const entry = (classes, text) => make("li", {}, make("span", { class: `swatch ${classes}` }), text);
  const drawn = (classes, text) => (picture.querySelector(`.box.${classes}`) ? [entry(classes.split(":")[0], text)] : []);
  const { data } = graph;
  const entries = [];
  if (colour === "kind") entries.push(...KINDS.map((kind, i) => entry(`kind-${kind}`, KIND_WORDS[i])));
  if (colour === "device") {
    entries.push(...data.devices.map((device, i) => entry(`device-${i % DEVICES}`, device)));
    entries.push(...drawn("device-many", "several"), ...drawn("device-none:not(.gone)", "not assigned yet"));
  }
  if (colour === "fate") {
    const known = new Set(data.nodes.map((node) => node.fate));
    entries.push(...FATES.filter((fate) => known.has(fate)).map((fate) => entry(`fate-${fate}`, fate)));
    entries.push(...drawn("fate-many", "several, as at their foot"));
  }
  if (colour === "time") {
    entries.push(...data.heats.map((words, i) => entry(`heat-${i}`, words)));
    entries.push(...drawn("heat-none", "did not run"), make("li", {}, data.timed));
  }
  if (colour === "kind") entries.push(...drawn("bookkeeping", "bookkeeping: computes nothing of a gradient"));
  entries.push(...drawn("gone", "gone"), ...drawn("changed", "changed in this step"));
  if (picture.querySelector(".badge")) {
    entries.push(make("li", {}, make("b", {}, "−2 ~1"), "gone and changed within a scope"));
  }
  if (picture.querySelector(".edge.transfer")) entries.push(entry("transfer", "sent to another device, with its bytes"));
  return entries;
}

/* Why an edge leads from Backward to Forward, for each that is drawn. */
function standInNotes(graph, edges) {
  const { nodes, standIns } = graph.data;
  const notes = edges
    .filter((edge) => graph.track(edge.a) > graph.track(edge.b))
    .flatMap((edge) => edge.pairs.flatMap(([source, target]) =>
      standIns.filter((row) => row.node === source).map(
        (row) => `${nodes[target].name} takes ${nodes[source].name}: ${row.by} found it equal to ${row.replaced} and kept one of them.`,
      ),
    ));
  return [...new Set(notes)];
}
