/* What the pages do when a reader acts and a server answers, without a browser. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { fakePage } from "./fake_dom.js";
import { ProgramFile } from "../../tflab/explore/page/file.js";
import { folded } from "../../tflab/report/page/folded.js";
import { showHistory } from "../../tflab/report/page/history.js";
import { Predictor } from "../../tflab/report/page/predict.js";
import { printable } from "../../tflab/report/page/prints.js";
import { Presenter } from "../../tflab/report/page/present.js";
import { Viewer } from "../../tflab/report/page/viewer.js";
import { spaced } from "../../tflab/report/page/layout.js";

const rect = (x, y) => ({ x, y, width: 10, height: 10 });
const step = (places, edges, way) => {
  const rects = new Map(places.map(([x, y], id) => [id, rect(x, y)]));
  const drawn = edges.map(([a, b]) => ({ a, b }));
  return Viewer.prototype.neighbour.call({ layout: { rects, isOpen: () => false }, drawn, box: () => true }, 0, way);
};
const [DOWN, RIGHT] = [[0, 1], [1, 0]];

test("an arrow key leads along an edge, to the box that lies most in its direction", () => {
  const places = [[0, 0], [60, 40], [0, 100], [0, -50]];
  const edges = [[0, 1], [2, 0], [3, 0]];
  // Down: box 1 is 40 below and 60 aside (40 + 2 * 60 = 160), box 2 is 100 below (100)
  assert.equal(step(places, edges, DOWN), 2);
  assert.equal(step(places, edges, RIGHT), 1);
  assert.equal(step(places, [[1, 2], [0, 3]], DOWN), 2); // no edge of box 0 leads down
  assert.equal(step([[0, 0], [50, 0]], [[0, 1]], DOWN), null); // beside it is not below it
});

test("boxes that share a place are spread about the mean of what they want, by weight", () => {
  // Offsets 0, 15, 30: wanted less offsets 30, 15, 0; the pool is at (30 + 15 + 0) / 3 = 15
  assert.deepEqual(spaced([30, 30, 30], [1, 1, 1], [10, 10, 10], 5), [15, 30, 45]);
  // (1 * 30 + 3 * 15) / 4 = 18.75
  assert.deepEqual(spaced([30, 30], [1, 3], [10, 10], 5), [18.75, 33.75]);
});

function presenting(states) {
  const { part } = fakePage();
  const shown = [];
  const viewer = { last: states - 1, state: 1, part, ended: new AbortController() };
  viewer.go = (state) => shown.push((viewer.state = Math.max(0, Math.min(viewer.last, state))));
  new Presenter(viewer);
  const press = (key) => part("screen").happens("keydown", { key, target: { closest: () => null } });
  return { press, shown };
}

test("keys go through the screens of a presentation, and stop at both ends", () => {
  const { press, shown } = presenting(4);
  for (const key of ["End", "ArrowRight", "ArrowLeft", "Home", "PageUp", " ", "x"]) press(key);
  assert.deepEqual(shown, [3, 3, 2, 0, 0, 1]);
});

test("colours say what the reader chose, also on a projector, or else what the stage is about", () => {
  const { get } = Object.getOwnPropertyDescriptor(Viewer.prototype, "colour");
  const viewer = { asking: false, presenting: true, state: 1, data: { stops: [{ last: 0, colour: "kind" }, { last: 1, colour: "time" }] } };
  assert.deepEqual(["line", "stage"].map((chosen) => get.call({ ...viewer, chosen })), ["line", "time"]);
});

test("links of a history lead to the state and the node that they name, and its table has every row", () => {
  const { part } = fakePage();
  const went = [];
  const lines = [["by ", { text: "remapper", state: 5 }, " into ", { text: "relu", node: 7 }]];
  const times = { title: "Times", rows: [["batch", "1"], ["calls", "2"], ["median", "3 us"]] };
  const node = { name: "conv", op: "Conv2D", history: [{ title: "Placement", about: "", state: 3, lines }], times, code: true };
  const viewer = { data: { nodes: [node] }, selected: 0, part, root: { id: "v" } };
  for (const does of ["go", "select", "listing"]) viewer[does] = (place) => went.push([does, place]);
  showHistory(viewer);
  for (const link of part("panel").all("a")) link.happens("click");
  assert.deepEqual(went, [["go", 3], ["go", 5], ["select", 7], ["listing", "conv"]]);
  assert.deepEqual(part("panel").all("tr").map((row) => row.children.map((cell) => cell.textContent)), times.rows);
});

test("each drawing on paper has arrowheads of its own, and the screen keeps its state", () => {
  const { part } = fakePage();
  const stops = ["Frontend", "Backward"].map((title, last) => ({ title, last }));
  const viewer = { part, data: { stops, states: [{ count: 1 }, { count: 2 }] }, mark: "v", state: 0, open: new Set([1]), selected: 4, chosen: "line", asking: false, zoom: 2 };
  const drawn = [];
  viewer.arrange = () => {
    drawn.push([viewer.mark, viewer.state, viewer.open.size, viewer.chosen]);
    part("paper").firstElementChild = { removeAttribute() {} };
  };
  const before = { ...viewer };
  printable(viewer);
  assert.deepEqual(drawn, [["v-print-0", 0, 0, "stage"], ["v-print-1", 1, 0, "stage"], ["v", 0, 1, "line"]]);
  assert.deepEqual({ ...viewer }, before);
  assert.equal(part("prints").children.length, 2);
});

test("a folded chapter opens where the address leads to it, and by a link to it later", () => {
  const { part } = fakePage();
  const chapters = { first: part("first"), second: part("second") };
  for (const [name, chapter] of Object.entries(chapters)) Object.assign(chapter, { querySelector: () => part(`${name} details`), scrollIntoView() {} });
  Object.assign(document, { querySelector: () => null, querySelectorAll: () => [], getElementById: (id) => chapters[id] ?? null });
  window.matchMedia = () => new EventTarget();
  globalThis.location = { hash: "#first" };
  const open = () => Object.keys(chapters).map((name) => part(`${name} details`).getAttribute("open"));
  folded();
  assert.deepEqual(open(), ["", null]);
  location.hash = "#second";
  window.happens("hashchange");
  assert.deepEqual(open(), ["", ""]);
});

test("the switch asks while it is on, and shows the results when it is off", () => {
  const { part } = fakePage();
  const toggle = document.createElement("button");
  toggle.setAttribute("aria-checked", "false");
  const asked = [];
  const root = { querySelector: (selector) => document.querySelector(selector), classList: { toggle() {} } };
  const predictor = new Predictor(/** @type {any} */ (root), toggle, (on) => asked.push([on, part("form").hidden]));
  predictor.put([{ text: "How many?", options: [], unit: "", answer: "1", reason: "" }]);
  toggle.happens("click");
  toggle.happens("click");
  assert.deepEqual(asked, [[true, false], [false, true]]);
  assert.equal(toggle.getAttribute("aria-checked"), "false");
});

test("a file is taken as it is, but not over edits in the page", async () => {
  const page = { text: "x = 1", said: "", say: (text) => (page.said = text), take: (text) => (page.text = text) };
  const file = new ProgramFile({ text: "x = 1", mark: "one" }, page);
  globalThis.fetch = async () => ({ ok: true, status: 200, json: async () => ({ text: "x = 2", mark: "two" }) });
  page.text = "x = 3";
  await file.look();
  assert.deepEqual([page.text, page.said], ["x = 3", "The file has changed. Undo your edits here to take it."]);
  page.text = "x = 1";
  await file.look();
  assert.deepEqual([page.text, file.known], ["x = 2", "two"]);
  globalThis.fetch = async () => ({ ok: true, status: 200, json: async () => ({ text: "x = 4", mark: "four" }) });
  page.text = "x = 4"; // the edit was written into the file
  await file.look();
  assert.deepEqual([page.text, file.known], ["x = 4", "four"]);
});

test("the tab shows the run that was asked for last, whichever answer comes last", async () => {
  const { part, asked } = fakePage({ run: "select" });
  const { Life } = await import("../../tflab/explore/page/life.js");
  const drawn = [];
  Life.prototype.draw = (life) => drawn.push(life.name);
  Life.prototype.list = () => {};
  await import("../../tflab/explore/page/tab.js");
  const settled = () => new Promise((done) => setImmediate(done));
  const answer = async (start, body, status) => {
    const place = asked.findIndex(({ url }) => url === start);
    assert.notEqual(place, -1, `nobody asked for ${start}`);
    await asked.splice(place, 1)[0].answer(body, status);
    await settled();
  };
  const choose = (mark) => {
    part("run").value = mark;
    part("run").happens("change");
  };
  await answer("page.html", "");
  await answer("runs", ["m1", "m2"]);
  assert.deepEqual(asked.map(({ url }) => url), ["run?run=m1"]);
  choose("m2");
  assert.deepEqual(asked.map(({ url }) => url), ["run?run=m1", "run?run=m2"]);
  await answer("run?run=m1", { name: "first" }); // of the choice before
  assert.deepEqual([drawn, part("status").textContent], [[], "Reading"]);
  await answer("run?run=m2", { name: "second" });
  assert.deepEqual([drawn, part("status").textContent, part("shown").hidden], [["second"], "", false]);
  choose("m1");
  choose("m2");
  await answer("run?run=m2", "This run is gone.", 404);
  await answer("run?run=m1", { name: "first" });
  assert.deepEqual([drawn.length, part("error").textContent, part("error").hidden, part("shown").hidden], [1, "This run is gone.", false, true]);
  choose("m1");
  await asked.shift().fail();
  await settled();
  assert.deepEqual([part("error").textContent, part("status").textContent], ["TensorBoard does not answer.", ""]);
});
