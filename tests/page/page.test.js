/* The page's scripts without a browser, on data as Python sends them: those of test_page.py, which
 * runs this file.
 *
 * The drawing has six forward nodes (x, a layer of four, loss), three gradients, two updates and a
 * node of the runtime, in four states: written, with gradients, and after two passes.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";

import { colourOf, legendEntries } from "../../tflab/report/page/colours.js";
import { packed, unpacked } from "../../tflab/explore/page/address.js";
import { stateOf } from "../../tflab/explore/page/seen.js";
import { indentAfter } from "../../tflab/explore/page/editor.js";
import { edgeLabel, labelsOfEdges, overlap } from "../../tflab/report/page/edges.js";
import { round, rounded } from "../../tflab/report/page/elements.js";
import { Graph, flowedIn, saysOp, valueLines } from "../../tflab/report/page/graph.js";
import { Layout, PRESENTING, READING, spaced, visibleBoxes } from "../../tflab/report/page/layout.js";
import { editWords, linesBelow, under } from "../../tflab/report/page/picture.js";
import { judged } from "../../tflab/report/page/predict.js";
import { Routes, curve } from "../../tflab/report/page/routes.js";
import { changed, ticks } from "../../tflab/report/page/slices.js";
import { rowsOf } from "../../tflab/report/page/table.js";
import { goalOf, nodeCount } from "../../tflab/report/page/timeline.js";

const SENT = readFileSync(process.env.TFLAB_PAGE_DATA, "utf8");
const graphOf = (changes = {}) => new Graph({ ...JSON.parse(SENT), ...changes });
const graph = graphOf();
const { data } = graph;
const NODE = Object.fromEntries(data.nodes.map((node, number) => [node.name, number]));
const BOX = Object.fromEntries(data.boxes.map((box, number) => [box.label, number]));
const [WRITTEN, GRADIENTS, REMAPPER, FED] = data.states.keys();
const LETTER = 10; // pixels, of every letter in these tests
const laidOut = (open = [], of = graph, room = Infinity) => new Layout(of, "", READING, (text) => text.length * LETTER).run(new Set(open), room);
const view = (state, colour, open = [], of = graph) => ({ graph: of, layout: laidOut(open, of), state, colour });

/* The edges of a state as "from -> to", those of closed scopes bundled, with how many they are. */
function edges(state, open) {
  const visible = visibleBoxes(graph, laidOut(open));
  const label = (id) => data.boxes[id].label;
  return graph
    .edges(state, (node) => visible.get(node))
    .map((edge) => `${label(edge.a)} -> ${label(edge.b)} ${edge.tensors.size}+${edge.control}`)
    .sort();
}

// Graph

test("a node has its version from the first state that has it to the last", () => {
  const op = (name, state) => graph.version(NODE[name], state)?.[2];
  const ops = (name) => [WRITTEN, GRADIENTS, REMAPPER, FED].map((state) => op(name, state));
  assert.deepEqual(ops("layer/Relu"), ["Relu", "Relu", "_FusedMatMul", "_FusedMatMul"]);
  assert.deepEqual(ops("layer/MatMul"), ["MatMul", "MatMul", undefined, undefined]);
  assert.deepEqual(ops("_arg_x"), [undefined, undefined, undefined, "_Arg"]);
});

test("the table of a state has its nodes, and those that leave in it", () => {
  const rows = (state) => Object.fromEntries(rowsOf(graph, state).map(({ node, cells }) => [data.nodes[node].name, cells]));
  assert.deepEqual(rows(WRITTEN)["layer/Relu"], ["Relu", "", "layer/MatMul", ""]);
  assert.equal(rows(WRITTEN)["gradients/ones"], undefined);
  assert.equal(rows(GRADIENTS)["gradients/ones"].at(-1), "new");
  assert.deepEqual([rows(REMAPPER)["layer/Relu"][0], rows(REMAPPER)["layer/Relu"].at(-1)], ["_FusedMatMul", "changed"]);
  assert.deepEqual(rows(REMAPPER)["layer/MatMul"], ["", "", "", "removed"]);
  assert.equal(rows(FED)["layer/MatMul"], undefined);
});

test("a node was seen from its first state on, also when it is gone", () => {
  const seen = (name) => data.states.map((_, state) => graph.seen(NODE[name], state));
  assert.deepEqual(seen("x"), [true, true, true, true]);
  assert.deepEqual(seen("gradients/ones"), [false, true, true, true]);
  assert.deepEqual(seen("_arg_x"), [false, false, false, true]);
});

test("edges lead from a node to those that take it, and closed scopes bundle theirs", () => {
  assert.deepEqual(edges(WRITTEN, []), ["layer -> loss 1+0", "x -> layer 1+0"]);
  assert.deepEqual(edges(GRADIENTS, []), [
    "layer -> layer gradients 1+0",
    "layer -> layer updates 1+0",
    "layer -> loss 1+0",
    "layer gradients -> layer updates 1+0",
    "x -> layer 1+0",
    "x -> layer gradients 1+0",
  ]);
  assert.deepEqual(edges(GRADIENTS, [BOX["layer updates"]]).slice(-3), [
    "train/update -> train 0+1",
    "x -> layer 1+0",
    "x -> layer gradients 1+0",
  ]);
  assert.deepEqual(edges(FED, [BOX.layer]), [
    "MatMul/ReadVariableOp -> Relu 1+0",
    "Relu -> layer gradients 1+0",
    "Relu -> loss 1+0",
    "_arg_x -> Relu 1+0",
    "kernel -> MatMul/ReadVariableOp 1+0",
    "kernel -> layer updates 1+0",
    "layer gradients -> layer updates 1+0",
  ]);
});

test("two boxes meet in the innermost scope around both", () => {
  const { layer, loss, Relu, MatMul, kernel } = BOX;
  assert.deepEqual(graph.meeting(Relu, loss), [BOX.Forward, layer, loss]);
  assert.deepEqual(graph.meeting(MatMul, kernel), [layer, MatMul, kernel]);
  assert.deepEqual(graph.meeting(Relu, BOX.train)[0], null);
  assert.equal(graph.track(BOX.train), 2);
});

test("a node that hands a tensor to another device says so beside its device", () => {
  const transfers = [{ send: NODE.x, recv: NODE.loss, bytes: "4 B", title: "" }];
  const placed = (name) => graphOf({ transfers }).placed(NODE[name], [0, 1, "_Send", "CPU:1", [], []]);
  assert.deepEqual(["x", "loss", "train"].map(placed), ["_Send, CPU:1", "_Send, CPU:1", "CPU:1"]);
});

test("values are shown in the states that have them, unless the page asks for them", () => {
  const shown = (asking) => data.states.map((_, state) => flowedIn({ graph, state, asking }));
  assert.deepEqual(shown(false), [false, true, false, false]);
  assert.deepEqual(shown(true), [false, false, false, false]);
});

test("a node has lines for its value, its gradient and what it computes", () => {
  const lines = (node, room) => valueLines(node, room).map((line) => line.text);
  assert.deepEqual(lines({ data: "[1, 2]", grad: "-3.5" }, true), ["[1, 2]", "grad -3.5"]);
  assert.deepEqual([lines({ missing: "fused" }, true), lines({ missing: "fused" }, false)], [["no value: fused"], []]);
});

// Names and numbers

test("places have a tenth of a pixel", () => {
  assert.equal(round(1.25), 1.3);
  assert.deepEqual(rounded({ x: 1.04, y: 2.06, width: 3.14, height: 4.16 }), { x: 1, y: 2.1, width: 3.1, height: 4.2 });
});

// Timeline

test("the count of a state has the one before in front where they differ", () => {
  const counts = data.states.map((_, state) => nodeCount(data.states, state));
  assert.deepEqual(counts, ["6 nodes", "6 → 11 nodes", "11 → 10 nodes", "10 nodes"]);
  assert.equal(nodeCount([{ count: 999 }, { count: 10332 }], 1), "999 → 10,332 nodes");
});

test("arrow keys go one state to and fro, Home and End to the ends", () => {
  const goals = ["ArrowLeft", "ArrowRight", "Home", "End", "a"].map((key) => goalOf(key, 2, 3));
  assert.deepEqual(goals, [1, 3, 0, 3, undefined]);
});

// Colours

const nothing = () => false;

test("the legend of times has every step of the scale, the shortest first", () => {
  assert.deepEqual(legendEntries(graph, "time", nothing), [
    ["heat-0", "median time from 0"],
    ["heat-1", "31 ns"],
    ["heat-2", "122 ns"],
    ["heat-3", "276 ns"],
    ["heat-4", "490 ns"],
    ["heat-5", "765 ns"],
    ["heat-6", "1.10 us"],
  ]);
  const idle = legendEntries(graph, "time", (selector) => selector === ".box.heat-none");
  assert.deepEqual(idle.at(-1), ["heat-none", "no time"]);
});

test("the legends of kinds, fates and devices name what Python sent", () => {
  const kinds = legendEntries(graph, "kind", (selector) => selector.startsWith(".box.kind-"));
  assert.deepEqual(kinds, [
    ["kind-forward", "forward"],
    ["kind-gradient", "gradient"],
    ["kind-update", "update"],
    ["kind-runtime", "made by the runtime"],
  ]);
  assert.deepEqual(legendEntries(graph, "kind", (selector) => selector === ".box.kind-update"), [kinds[2]]);
  assert.deepEqual(legendEntries(graph, "fate", nothing), [
    ["fate-fused", "fused"],
    ["fate-runtime", "runtime"],
  ]);
  const device = ["CPU:0", "CPU:1", "2", "3", "4", "5", "6"];
  const of = graphOf({ legend: { ...data.legend, device } });
  assert.deepEqual(
    legendEntries(of, "device", nothing).map(([name]) => name),
    ["device-0", "device-1", "device-2", "device-3", "device-4", "device-5", "device-6"],
  );
});

test("the legend explains each sign that is in the picture, and no other", () => {
  const all = legendEntries(graph, "device", () => true).map(([name]) => name);
  assert.deepEqual(all, ["device-many", "device-none", "gone", "changed", "transfer", "shape", "cross"]);
  assert.deepEqual(legendEntries(graph, "stage", nothing), []);
});

test("a box has the colour of its device, of several, or of none", () => {
  const nodes = data.nodes.map((node) => ({ ...node, versions: node.versions.map((version) => version.with(3, "CPU:1")) }));
  nodes[NODE["layer/Relu"]].versions = [[0, 3, "Relu", "CPU:0", [], []]];
  const of = graphOf({ nodes, legend: { ...data.legend, device: ["CPU:0", "CPU:1"] } });
  const colour = (label) => colourOf(of, "device", WRITTEN, BOX[label], of.inside[BOX[label]].filter((node) => of.version(node, WRITTEN)));
  assert.deepEqual(["x", "Relu", "layer", "train"].map(colour), ["device-1", "device-0", "device-many", "device-none"]);
});

test("a box has the colour of its time and of its fate", () => {
  const colours = (colour, labels) => labels.map((label) => colourOf(graph, colour, FED, BOX[label], []));
  assert.deepEqual(colours("time", ["Relu", "MatMul/ReadVariableOp", "loss"]), ["heat-6", "heat-2", "heat-none"]);
  assert.deepEqual(colours("fate", ["MatMul", "loss", "layer"]), ["fate-fused", "fate-runtime", "fate-many"]);
});

// Picture

test("below the name of a box stands its op, its time, or how many nodes it has", () => {
  const below = (label, state, colour) => {
    const id = BOX[label];
    return under({ graph, state, colour }, id, graph.inside[id].filter((node) => graph.version(node, state)));
  };
  assert.equal(below("Relu", GRADIENTS, "kind"), "Relu");
  assert.equal(below("Relu", REMAPPER, "kind"), "_FusedMatMul");
  assert.equal(below("Relu", FED, "time"), "1.50 us");
  assert.equal(below("layer", FED, "time"), "1.75 us");
  assert.equal(below("loss", FED, "time"), "Mean");
  assert.equal(below("MatMul", REMAPPER, "kind"), "");
  assert.equal(below("layer", GRADIENTS, "kind"), "4 nodes");
  assert.equal(below("layer", REMAPPER, "kind"), "3 of 4 nodes");
});

test("the op is not said twice, and the values follow it", () => {
  const nodes = data.nodes.map((node, number) => (number === NODE["layer/Relu"] ? { ...node, data: "[1]", grad: "2" } : node));
  const of = graphOf({ nodes });
  const lines = (state, below) => linesBelow(view(state, "kind", [], of), BOX.Relu, below).map((line) => line.text);
  assert.deepEqual(lines(GRADIENTS, "Relu"), ["[1]", "grad 2"]);
  assert.deepEqual(lines(GRADIENTS, "Fused"), ["Fused", "[1]", "grad 2"]);
  assert.deepEqual(lines(WRITTEN, "Fused"), ["Fused"]);
  // On a projector values replace an op, and follow a time
  const projected = (colour, below) => linesBelow({ graph: of, layout: { sizes: PRESENTING }, state: GRADIENTS, colour }, BOX.Relu, below).map((line) => line.text);
  assert.deepEqual(projected("line", "Fused"), ["[1]", "grad 2"]);
  assert.deepEqual(projected("time", "3 us"), ["3 us", "[1]", "grad 2"]);
});

// Edges

const edge = (changes) => ({ a: BOX.x, b: BOX.layer, tensors: tensors("?x28x6"), control: 0, transfers: [], cut: false, ...changes });
const tensors = (...shapes) => new Map(shapes.entries());

test("beside an edge stand its bytes, its shapes, how many tensors it carries, or that a gradient stops", () => {
  const label = (changes) => edgeLabel(edge(changes));
  assert.equal(label({}), "?x28x6");
  assert.deepEqual(["16", "?", "1", "0", ""].map((shape) => label({ tensors: tensors(shape) })), ["16", "", "", "", ""]);
  const several = [["16", "16"], ["5x5x1x6", "6"], ["16", "16", "6"], ["5", ""], ["", ""], ["1", "0"]];
  assert.deepEqual(several.map((shapes) => label({ tensors: tensors(...shapes) })), ["2 × 16", "5x5x1x6, 6", "3 tensors", "2 tensors", "2 tensors", "2 tensors"]);
  assert.equal(label({ tensors: tensors(), control: 2 }), "");
  assert.equal(label({ transfers: [{ bytes: "4 B" }, { bytes: "1.50 KB" }] }), "4 B, 1.50 KB");
  assert.equal(label({ cut: true }), "×");
});

test("of two labels at one place the more important one stays above its edge, and none lies on a box or on an edge", () => {
  globalThis.document = { createElementNS: (_, name) => ({ name, attributes: {}, children: [], setAttribute(key, value) { this.attributes[key] = value; }, append(...children) { this.children.push(...children); } }), createElement: () => ({ getContext: () => ({ measureText: (text) => ({ width: 6 * text.length }) }) }) };
  const at = { "1>2": [[100, 100]], "2>3": [[103, 100]], "3>4": [[15, 5]], "4>5": [[200, 50], [15, 5]], "5>6": [[15, 5]], "6>7": [[340, 100], [300, 100]], "7>8": [[300, 91], [300, 109]], "8>9": [[410, 91], [400, 100]] };
  const routes = { points: (a, b) => at[`${a}>${b}`].map(([x, y]) => ({ x, y, upright: false })) };
  const drawn = [[1, 2, {}], [2, 3, { tensors: tensors("", "") }], [3, 4, {}], [4, 5, { transfers: [{ bytes: "4 B" }] }], [5, 6, { transfers: [{ bytes: "8 B" }] }], [6, 7, {}], [7, 8, { tensors: tensors() }], [8, 9, {}]].map(([a, b, changes]) => edge({ a, b, ...changes }));
  const labels = labelsOfEdges({ drawn, routes, layout: { solid: [{ x: 0, y: 0, width: 30, height: 10 }], fonts: {}, sizes: READING } });
  assert.deepEqual(labels.map(({ children }) => children[0]), ["4 B", "8 B", "2 tensors", "?x28x6", "?x28x6", "?x28x6"]); // bytes stand anywhere
  // At 300 it would stand on the line of another edge; above 400 on that of its own
  assert.deepEqual(labels.slice(3).map(({ attributes: { x, y } }) => [x, y]), [[100, 113], [340, 95], [400, 113]]);
  assert.deepEqual([labels[0].attributes.x, labels[0].attributes.class], [200, "count transfer"]);
  const rect = (x, y) => ({ x, y, width: 10, height: 10 });
  assert.deepEqual([[5, 5], [10, 0], [0, 10], [9, 9]].map(([x, y]) => overlap(rect(0, 0), rect(x, y))), [true, false, false, true]);
});

test("an edge knows the shapes of its tensors, and whether a gradient stops there", () => {
  const at = (state, of, from = "x") => of.edges(state, (node) => node).find(({ a, b }) => a === NODE[from] && b === NODE["layer/MatMul"]);
  const nodes = data.nodes.map((node) => ({ ...node, versions: node.versions.map((version) => version.with(6, ["?x2", "2x3"])) }));
  const shapes = ["x", "layer/MatMul/ReadVariableOp"].map((from) => [...at(WRITTEN, graphOf({ nodes }), from).tensors.values()]);
  assert.deepEqual(shapes, [["?x2"], ["2x3"]]);
  // A tensor that is taken twice is one; two outputs of a node are two
  const taken = (outputs) => {
    const twice = data.nodes.map((node) => ({ ...node, versions: node.versions.map((version) => version.with(4, [NODE.x, NODE.x]).with(7, outputs)) }));
    return at(WRITTEN, graphOf({ nodes: twice })).tensors.size;
  };
  assert.deepEqual([taken(["", ""]), taken(["", "1"])], [1, 2]);
  const states = data.states.map((state, number) => ({ ...state, cut: number === GRADIENTS ? [[NODE.x, NODE["layer/MatMul"]]] : [] }));
  const cut = graphOf({ states });
  assert.deepEqual([at(WRITTEN, cut).cut, at(GRADIENTS, cut).cut, at(GRADIENTS, graph).cut], [false, true, false]);
});

// Layout

test("positions come as near to those desired as their order and the gaps let them", () => {
  assert.deepEqual(spaced([0, 100], [1, 1], [10, 10], 5), [0, 100]);
  assert.deepEqual(spaced([50, 50], [1, 1], [10, 10], 5), [42.5, 57.5]);
  assert.deepEqual(spaced([50, 50], [3, 1], [10, 10], 5), [46.25, 61.25]);
  assert.deepEqual(spaced([100, 0, 500], [1, 1, 1], [10, 30, 10], 5), [37.5, 62.5, 500]);
});

test("closed scopes stand in the rows of the data, as wide as their longest line", () => {
  const layout = laidOut();
  const high = 6 + (13 + 3) + (13 + 3); // a name and a line below it
  // Above the first row are the margin and the headings; between rows are 15 pixels.
  const first = 6 + 26;
  const tops = [first, first + high + 15, first + 2 * (high + 15)];
  const size = (label) => {
    const rect = layout.rects.get(BOX[label]);
    return [rect.y, rect.width, rect.height];
  };
  assert.deepEqual(size("x"), [tops[0], 11 * LETTER + 16, high]); // Placeholder
  assert.deepEqual(size("_arg_x"), [tops[0], 6 * LETTER + 16, high]);
  assert.deepEqual(size("layer"), [tops[1], 14 * LETTER + 16, high]); // 88 of 88 nodes
  assert.deepEqual(size("loss"), [tops[2], 44 + 16, high]); // no box is narrower
  assert.deepEqual(size("layer gradients"), [tops[1], 15 * LETTER + 16 + 16, high]);
  assert.equal(layout.rects.get(BOX.Relu), undefined);
  assert.equal(layout.height, tops[2] + high + 14);
});

test("tracks stand side by side with room between them for their edges", () => {
  const { tracks, width } = laidOut();
  assert.deepEqual(tracks, [
    { x: 20, width: 126 + 10 + 76, top: 0 }, // x and _arg_x
    { x: 20 + 212 + 44, width: 182, top: 0 },
    { x: 20 + 212 + 44 + 182 + 44, width: 162, top: 0 },
  ]);
  assert.equal(width, 20 + 212 + 44 + 182 + 44 + 162 + 20);
});

test("on a small screen, a track stands below the other if they do not fit side by side", () => {
  const wide = 20 + 196 + 44 + 176 + 44 + 156 + 20; // each box is 6 narrower, and 6 from the next
  assert.deepEqual([laidOut([], graph, wide).width, laidOut([], graph, 600).stacked], [wide, false]);
  const layout = laidOut([], graph, 599);
  const { tracks, width, gutters } = layout;
  assert.deepEqual([layout.stacked, width], [true, 20 + 196 + 20]);
  assert.deepEqual(tracks.map((track) => [track.x, track.width]), tracks.map(() => [20, 196]));
  const tops = tracks.map(({ top }) => top);
  assert.ok(0 === tops[0] && tops[0] < tops[1] && tops[1] < tops[2] && tops[2] < layout.height);
  const within = (label, track) => tops[track] < layout.rects.get(BOX[label]).y && layout.rects.get(BOX[label]).y < (tops[track + 1] ?? layout.height);
  assert.ok(within("x", 0) && within("loss", 0) && within("layer gradients", 1));
  assert.ok(gutters.every(({ top, bottom }) => !tops.some((y) => top <= y && y < bottom)));
});

test("what does not fit into the room of a small screen moves to the left, as far as there is room", () => {
  const right = (layout) => Math.max(...[...layout.rects.values()].map(({ x, width }) => x + width));
  assert.equal(laidOut([], graph, 196 + 40).width, 196 + 40);
  assert.ok(right(laidOut([], graph, 100)) <= 20 + 196); // its widest row is what it is
});

test("boxes that an edge joins stand below each other", () => {
  const layout = laidOut();
  const middle = (label) => layout.rects.get(BOX[label]).x + layout.rects.get(BOX[label]).width / 2;
  assert.equal(middle("layer"), middle("loss"));
});

test("an open scope is around its boxes, and none of them lie on each other", () => {
  const layout = laidOut([BOX.layer]);
  const scope = layout.rects.get(BOX.layer);
  const inner = ["kernel", "MatMul/ReadVariableOp", "MatMul", "Relu"].map((label) => layout.rects.get(BOX[label]));
  for (const rect of inner) {
    assert.ok(scope.x < rect.x && rect.x + rect.width < scope.x + scope.width);
    assert.ok(scope.y + layout.head <= rect.y && rect.y + rect.height < scope.y + scope.height);
  }
  inner.slice(1).forEach((rect, i) => assert.equal(rect.y, inner[i].y + inner[i].height + 15));
});

test("a box stands in the middle of its row, however high the row is", () => {
  const layout = laidOut([BOX.layer]);
  const middle = (label) => layout.rects.get(BOX[label]).y + layout.rects.get(BOX[label]).height / 2;
  assert.equal(middle("layer gradients"), middle("layer"));
});

test("a place is drawn to those above, to those below, or to both", () => {
  const entry = { x: 0, above: [{ x: 10, above: [1] }], below: [{ x: 40, below: [1] }, { x: 60, below: [1] }] };
  const goal = (side) => laidOut().goal(entry, side);
  assert.deepEqual(goal("above"), { x: 10, weight: 1 });
  assert.deepEqual(goal("below"), { x: 50, weight: 2 });
  assert.deepEqual(goal(null), { x: 110 / 3, weight: 3 });
});

test("each node is shown by its box, or by the closed scope around it", () => {
  const shown = (open) => ["x", "layer/Relu", "train"].map((name) => visibleBoxes(graph, laidOut(open)).get(NODE[name]));
  assert.deepEqual(shown([]), [BOX.x, BOX.layer, BOX["layer updates"]]);
  assert.deepEqual(shown([BOX.layer]), [BOX.x, BOX.Relu, BOX["layer updates"]]);
});

// Routes

test("a line leaves and arrives upright, or level", () => {
  assert.equal(curve([[0, 0], [0, 10]], true), "M0,0L0,10");
  assert.equal(curve([[0, 0], [20, 10]], true), "M0,0C0,5,20,5,20,10");
  assert.equal(curve([[0, 0], [20, 10]], false), "M0,0C10,0,10,10,20,10");
});

/* The first and the last point of a path. */
function ends(path) {
  const numbers = path.match(/-?[\d.]+/g).map(Number);
  return [numbers.slice(0, 2), numbers.slice(-2)];
}

test("an edge leads from the foot of a box to the top of the next, and back up from top to foot", () => {
  const layout = laidOut();
  const routes = new Routes(layout);
  const [upper, lower] = [layout.rects.get(BOX.layer), layout.rects.get(BOX.loss)];
  const middle = round(upper.x + upper.width / 2);
  const [top, foot] = [round(lower.y), round(upper.y + upper.height)];
  assert.deepEqual(ends(routes.path(BOX.layer, BOX.loss)), [[middle, foot], [middle, top]]);
  // What leads against the flow of its track keeps 12 pixels away from what leads along it
  assert.deepEqual(ends(routes.path(BOX.loss, BOX.layer)), [[middle + 12, top], [middle + 12, foot]]);
});

test("an edge to another track leaves and arrives at the sides that face each other", () => {
  const layout = laidOut();
  const routes = new Routes(layout);
  const [left, right] = [layout.rects.get(BOX.layer), layout.rects.get(BOX["layer gradients"])];
  const [out, into] = [0.33, 0.67].map((place) => round(left.y + left.height * place));
  const [from, to] = [round(left.x + left.width), round(right.x)];
  assert.deepEqual(ends(routes.path(BOX.layer, BOX["layer gradients"])), [[from, out], [to, into]]);
  // Both sides have a port for what leaves, and another for what arrives
  assert.deepEqual(ends(routes.path(BOX["layer gradients"], BOX.layer)), [[to, out], [from, into]]);
});

test("an edge goes through the lanes of the rows that it passes, down or up", () => {
  const layout = laidOut([BOX.layer]);
  const routes = new Routes(layout);
  const lanes = layout.lanes.get(`-1>${BOX.MatMul}`);
  assert.equal(lanes.length, 2); // beside kernel, and beside MatMul/ReadVariableOp
  const points = lanes.flatMap((lane) => [[lane.x, lane.top], [lane.x, lane.bottom]].map((point) => point.map(round)));
  const down = routes.path(BOX.x, BOX.MatMul);
  const passed = (path) => path.split(/[MLC]/).map((part) => part.split(",").slice(-2).map(Number)).slice(2, -1);
  assert.deepEqual(passed(down), points);
  layout.lanes.set(`${BOX.MatMul}>-1`, lanes); // those of an edge that leads back
  assert.deepEqual(passed(routes.path(BOX.MatMul, BOX.x)), points.toReversed().map(([x, y]) => [round(x + 12), y]));
});

test("an edge has the lanes out of its scopes, between them, and into the other scopes", () => {
  const routes = new Routes(laidOut());
  const { kernel, layer, loss } = BOX;
  routes.layout.lanes = new Map([[`${kernel}>-1`, ["out"]], [`${layer}>${loss}`, ["on"]], [`-1>${kernel}`, ["into"]], [`${loss}>${layer}`, ["back"]]]);
  assert.deepEqual(routes.lanesOf(kernel, loss), ["out", "on"]);
  assert.deepEqual(routes.lanesOf(loss, kernel), ["back", "into"]);
});

test("an edge without lanes that would pass behind a row goes around it: down on the left, up on the right", () => {
  const routes = new Routes(laidOut());
  const rect = (label) => routes.layout.rects.get(BOX[label]);
  assert.deepEqual(["layer", "loss"].map((label) => routes.skips(rect("x"), rect(label))), [false, true]);
  assert.deepEqual(["layer", "loss"].map((label) => routes.skips(rect(label), rect("x"))), [false, true]);
  const [upper, lower] = [0, 100].map((y) => ({ x: 50, y, width: 20, height: 10 }));
  assert.equal(routes.around(upper, lower, 0), "M50,3.3L16,3.3Q6,3.3,6,13.3L6,96.7Q6,106.7,16,106.7L50,106.7");
  assert.equal(routes.around(lower, upper, 0), "M70,103.3L236,103.3Q246,103.3,246,93.3L246,16.7Q246,6.7,236,6.7L70,6.7");
});

// Predict

test("a timeline has round ticks, keeps the time under the pointer, and stays within the step", () => {
  assert.deepEqual(ticks(0, 2_600_000, 5), [[0, "0 ms"], [1e6, "1 ms"], [2e6, "2 ms"]]);
  assert.deepEqual(ticks(1_130, 1_190, 3), [[1_140, "1.14 us"], [1_160, "1.16 us"], [1_180, "1.18 us"]]);
  assert.deepEqual(changed({ from: 0, to: 1_000 }, 1_000, 2, 0.25), { from: 125, to: 625 });
  assert.deepEqual(changed({ from: 800, to: 1_000 }, 1_000, 0.5, 1), { from: 600, to: 1_000 });
  assert.deepEqual(changed({ from: 400, to: 500 }, 1_000, 0), { from: 0, to: 1_000 });
  assert.deepEqual(changed({ from: 0, to: 150 }, 1_000, 2), { from: 0, to: 100 });
  assert.deepEqual(changed({ from: 100, to: 300 }, 1_000, 1, 0, 0.1), { from: 120, to: 320 });
  assert.deepEqual(changed({ from: 10, to: 110 }, 1_000, 1, 0, -0.5), { from: 0, to: 100 });
});

test("a prediction is right, close within a quarter, or so much too high or low", () => {
  const number = { options: [], answer: "100" };
  assert.deepEqual(judged(number, "100"), [true, ": right"]);
  assert.deepEqual(judged(number, "125"), [true, ": close, 25 too high"]);
  assert.deepEqual(judged(number, "126"), [false, ": 26 too high"]);
  assert.deepEqual(judged(number, "75"), [true, ": close, 25 too low"]);
  assert.deepEqual(judged(number, "10.26"), [false, ": 89.7 too low"]);
  const choice = { options: ["a", "b"], answer: "a" };
  assert.deepEqual(judged(choice, "a"), [true, ": right"]);
  assert.deepEqual(judged(choice, "b"), [false, ": not this one"]);
});

// The live page

test("a box has the colour of its line, and says when it has several", () => {
  const lines = data.nodes.map((node) => (node.name === "x" ? [3] : node.name.startsWith("layer/") ? [5, 9] : []));
  const lined = graphOf({ lines });
  assert.deepEqual([...lined.colourOfLine], [[3, 0], [5, 1], [9, 2]]);
  assert.deepEqual(lined.linesOf(BOX.layer), [5, 9]);
  const colours = ["x", "layer", "loss"].map((label) => colourOf(lined, "line", WRITTEN, BOX[label], []));
  assert.deepEqual(colours, ["line-0", "line-many", "line-none"]);
  const entries = (of) => legendEntries(of, "line", (selector) => selector === ".box.line-many");
  assert.deepEqual(entries(lined), [["line-0", "line 3"], ["line-1", "5"], ["line-2", "9"], ["line-many", "several lines"]]);
  assert.deepEqual(entries(graphOf({ lines, file: "toy.py" }))[0], ["line-0", "toy.py:3"]);
  assert.deepEqual(["x", "layer", "loss"].map((label) => lined.numbers(BOX[label])), ["3", "5,9", ""]);
});

test("eight lines have hues, further ones share one, and a box has the number of each", () => {
  const lines = data.nodes.map((_, node) => (node === NODE.loss ? [10, 11, 12] : [node + 1]));
  const many = graphOf({ lines });
  assert.deepEqual([...many.colourOfLine.values()].slice(0, 10), [0, 1, 2, 3, 4, 5, 6, 7, "more", "more"]);
  assert.equal(many.numbers(BOX.loss), "10–12");
  assert.equal(legendEntries(many, "line", nothing).at(-1)[0], "line-more");
});

test("a label that says the op stands alone, and a long one breaks after scopes", () => {
  assert.deepEqual([["mul_1", "Mul"], ["conv/Relu", "Relu"], ["add", "AddV2"], ["x", "Placeholder"]].map(([label, op]) => saysOp(label, op)), [true, true, false, false]);
  const lines = (label) => graphOf({ boxes: [{ ...data.boxes[0], label }] }).labelLines(0);
  assert.deepEqual(["train", "layer/Relu", "update_y/ResourceApply", "a/b/Conv2D_grad/Conv2DBackpropFilter"].map(lines), [
    ["train"],
    ["layer/Relu"],
    ["update_y/", "ResourceApply"],
    ["a/b/Conv2D_grad/", "Conv2DBackpropFilter"],
  ]);
});

test("a box says what an edit did to it, a scope to how many of its nodes", () => {
  const marks = new Map([[NODE.x, "new"], [NODE["layer/MatMul"], "changed"], [NODE["layer/Relu"], "changed"]]);
  const inside = graph.inside[BOX.layer];
  assert.equal(editWords({ ...view(WRITTEN, "kind"), marks }, [NODE.x], false), "new");
  assert.equal(editWords({ ...view(WRITTEN, "kind"), marks }, inside, true), "2 changed");
  assert.equal(editWords({ ...view(WRITTEN, "kind"), marks }, [NODE.loss], false), "");
  assert.equal(editWords(view(WRITTEN, "kind"), [NODE.x], false), "");
});

test("an edit stays at the state that was looked at, or at the last of its stage", () => {
  const states = [["frontend", "Frontend"], ["placement", "placer"], ["placement", "remapper"], ["execution", "Execution"]].map(([stage, title]) => ({ stage, title }));
  const shown = (goal, among = states) => stateOf(among, goal);
  assert.equal(shown(null), 3);
  assert.equal(shown({ stage: "placement", title: "placer" }), 1);
  assert.equal(shown({ stage: "placement", title: "gone" }), 2);
  assert.equal(shown({ stage: "placement", title: "placer" }, states.slice(0, 1)), 0);
});

test("a new line is indented as the one before, and more behind a colon", () => {
  assert.deepEqual(["x", "  x", "  with y: "].map(indentAfter), ["", "  ", "      "]);
});

test("a state goes through the address and back, and nonsense is none", async () => {
  const state = { text: "x = 'ä\u2028' # \u{1f600}", without: ["remapper"] };
  const text = await packed(state);
  assert.match(text, /^[\w-]+$/);
  assert.deepEqual(await unpacked(text), state);
  assert.equal(await unpacked("nonsense!"), null);
});
