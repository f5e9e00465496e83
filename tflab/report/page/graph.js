/* Graph: the nodes in each state of the graph, and the boxes that they are in. */

// What stands where in a version of a node, as Python sends it
const [FIRST, LAST, OP, DEVICE, INPUTS, CONTROLS] = [0, 1, 2, 3, 4, 5];

/* The device of a node; of one that hands a tensor to another device, its op too. */
function placed(version) {
  return /^_(Host)?(Send|Recv)$/.test(version[OP]) ? `${version[OP]}, ${version[DEVICE]}` : version[DEVICE];
}

class Graph {
  constructor(data) {
    this.data = data;
    this.boxOf = new Map(data.boxes.flatMap((box, id) => (box.node === null ? [] : [[box.node, id]])));
    this.ways = []; // box -> the boxes around it from the outside in, and itself
    data.boxes.forEach((box, id) => {
      this.ways[id] = box.parent === null ? [id] : [...this.ways[box.parent], id];
    });
    this.inside = data.boxes.map(() => []); // box -> the nodes in it
    this.boxOf.forEach((id, node) => this.ways[id].forEach((around) => this.inside[around].push(node)));
    this.labels = data.boxes.map((box) => shortened(box.label));
    data.boxes.forEach((box) => this.distinguish(box.rows.flat().filter((entry) => typeof entry === "number")));
  }

  /* Give boxes that stand together their whole labels where the short ones are the same. */
  distinguish(ids) {
    const alike = new Map();
    ids.forEach((id) => alike.set(this.labels[id], [...(alike.get(this.labels[id]) || []), id]));
    for (const group of alike.values()) {
      if (group.length > 1) group.forEach((id) => (this.labels[id] = this.data.boxes[id].label));
    }
  }

  /* The version of a node that stands in a state; none where it is not in the graph. */
  version(node, state) {
    return this.data.nodes[node].versions.find((version) => version[FIRST] <= state && state <= version[LAST]);
  }

  /* Whether a node was in the graph in this state or before. */
  seen(node, state) {
    const { versions } = this.data.nodes[node];
    return versions.length > 0 && versions[0][FIRST] <= state;
  }

  track(id) {
    return this.data.tracks.indexOf(this.ways[id][0]);
  }

  /* The box around both, and the two boxes in it that the ends of an edge are in. */
  meeting(a, b) {
    const [ofA, ofB] = [this.ways[a], this.ways[b]];
    let depth = 0;
    while (depth < ofA.length && depth < ofB.length && ofA[depth] === ofB[depth]) depth++;
    return [depth ? ofA[depth - 1] : null, ofA[depth], ofB[depth]];
  }

  /* Edges between visible boxes in a state, those of closed scopes bundled. `visible` gives the
   * box that stands for a node. */
  edges(state, visible) {
    const bundles = new Map();
    const bundle = (source, target) => {
      const [a, b] = [visible(source), visible(target)];
      if (a === b) return null;
      const key = `${a}>${b}`;
      if (!bundles.has(key)) bundles.set(key, { a, b, data: 0, control: 0, ends: [], pairs: [], transfers: [] });
      const edge = bundles.get(key);
      edge.ends.push(source, target);
      return edge;
    };
    const versions = this.data.nodes.map((_, node) => this.version(node, state));
    versions.forEach((version, node) => {
      if (!version) return;
      for (const source of version[INPUTS]) {
        const edge = versions[source] && bundle(source, node);
        if (!edge) continue;
        edge.data++;
        edge.pairs.push([source, node]);
      }
      for (const source of version[CONTROLS]) {
        const edge = versions[source] && bundle(source, node);
        if (edge) edge.control++;
      }
    });
    for (const transfer of this.data.transfers) {
      if (!versions[transfer.send] || !versions[transfer.recv]) continue;
      const edge = bundle(transfer.send, transfer.recv);
      if (edge) edge.transfers.push(transfer);
    }
    return [...bundles.values()];
  }
}
