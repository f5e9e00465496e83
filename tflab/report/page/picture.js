/* Picture: a graph in one of its states, as SVG.
 *
 * A view says what is drawn: graph, layout, routes, the edges, state, colour, zoom, a mark for ids,
 * and which node is selected and which box was visited last.
 */

import { make, nodesOf, round, rounded, textWidth, thousands } from "./elements.js";
import { DEVICE, OP, flowedIn, saysOp, valueLines } from "./graph.js";
import { LEADING, MARGIN } from "./layout.js";
import { colourOf, partsOf } from "./colours.js";
import { drawEdge, labelsOfEdges } from "./edges.js";

const [PROGRAM_TOP, PROGRAM_ROW, PROGRAM_LETTER, PROGRAM_DIGITS] = [44, 18, 7.9, 5]; // pixels, and letters before a line
const MANY = 500; // edges: such a drawing is not painted again while it scrolls; see viewer.css

/** @param {import("./data").View} view
 * @returns {SVGElement} */
export function drawPicture(view) {
  const { graph, layout, state } = view;
  const { data } = graph;
  const frames = make("g", {});
  const lines = make("g", { class: "edges" });
  const boxes = make("g", {});
  const about = {
    touched: new Set(data.states[state].touched),
    leaving: new Set(data.states[state].gone),
    related: new Set(view.selected === null ? [] : data.nodes[view.selected].related),
  };
  const svg = make(
    "svg",
    {
      viewBox: `0 0 ${round(layout.width)} ${round(layout.height)}`,
      width: layout.width * view.zoom,
      height: layout.height * view.zoom,
      role: "group",
      "aria-label": `${data.title}: ${data.states[state].title}, ${nodesOf(data.states[state].count)}`,
      class: `colour-${view.colour}${view.drawn.length > MANY ? " large" : ""}`,
    },
    markers(view.mark),
    headings(view),
    frames,
    lines,
    boxes,
  );
  const edges = view.drawn.map((edge) => drawEdge(view, edge));
  lines.append(...edges, ...(edges.length > MANY ? [] : labelsOfEdges(view)));
  const walk = (id) => {
    const box = data.boxes[id];
    const inner = layout.isOpen(id);
    if (layout.rects.has(id) && box.framed) {
      const here = graph.inside[id].filter((node) => graph.version(node, state));
      if (graph.inside[id].some((node) => graph.seen(node, state))) {
        if (inner) frames.append(drawFrame(view, id, here));
        boxes.append(inner ? drawHead(view, id) : drawBox(view, id, here, about));
      } else if (inner) return;
    }
    if (inner) box.rows.flat().forEach((entry) => typeof entry === "number" && walk(entry));
  };
  data.tracks.forEach(walk);
  const stop = boxes.querySelector(`[data-box="${view.current}"]`) ?? boxes.firstElementChild;
  if (stop) stop.setAttribute("tabindex", "0");
  return svg;
}

function markers(mark) {
  const arrow = (id) =>
    make(
      "marker",
      { id: `${mark}-${id}`, class: id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
      make("path", { d: "M0.5 0.8L7.5 4L0.5 7.2z" }),
    );
  return make("defs", {}, ...["arrow", "arrow-lit", "arrow-transfer"].map(arrow));
}

/** @param {import("./data").View} view */
function headings(view) {
  const { graph, layout } = view;
  const { data } = graph;
  const lines = listed(view);
  const left = layout.tracks[1]?.x;
  const texts = lines.flatMap(([number, text], i) => {
    const y = layout.tracks[1].top + PROGRAM_TOP + (i + 1) * PROGRAM_ROW;
    const fill = make("rect", { class: `line-${graph.colourOfLine.get(number)}`, x: left, y: y - PROGRAM_LETTER * 2 + 3, width: PROGRAM_LETTER * PROGRAM_DIGITS - 4, height: PROGRAM_ROW });
    return [fill, make("text", { x: left, y }, text)];
  });
  const about = make("text", { x: left, y: layout.tracks[1].top + PROGRAM_TOP - 4 }, "The program; boxes have the numbers of their lines");
  const group = make("g", { class: "headings" }, ...(lines.length ? [make("g", { class: "listed" }, about, ...texts)] : []));
  layout.tracks.forEach((track, index) => {
    if (graph.inside[data.tracks[index]].some((node) => graph.seen(node, view.state))) group.append(make("text", { x: track.x + track.width / 2, y: track.top + MARGIN + 8 }, data.headings[index]));
  });
  return group;
}

/** The program stands where the nodes of later stages will, as far as there is room; a projector has it beside.
 * @param {import("./data").View} view
 * @returns {[line: number, text: string][]} */
function listed({ beside, graph, layout, state }) {
  const { program, states, tracks } = graph.data;
  if (beside || !layout.sizes.both || !graph.inside[tracks[1]]?.length || states[state].stage !== "frontend") return [];
  const [room, most] = [layout.width - layout.tracks[1].x - MARGIN, Math.floor((layout.height - layout.tracks[1].top - PROGRAM_TOP) / PROGRAM_ROW)];
  const letters = Math.floor(room / PROGRAM_LETTER) - PROGRAM_DIGITS;
  if (letters < 2 * PROGRAM_DIGITS || most < 2) return [];
  const rowOf = (head, line, code) => /** @type {[number, string]} */ ([line, `${String(head).padStart(PROGRAM_DIGITS - 1)} ${code}`]);
  const parts = new RegExp(`.{1,${letters}},?(\\s|$)|.{1,${letters}}`, "g");
  const whole = program.flatMap(([line, code]) => code.match(parts).map((part, i) => rowOf(i ? "" : line, line, part)));
  const rows = whole.length <= most ? whole : program.map(([line, code]) => rowOf(line, line, code.length > letters ? `${code.slice(0, letters - 1)}…` : code));
  return rows.length > most ? [...rows.slice(0, most - 1), [0, `${" ".repeat(PROGRAM_DIGITS)}… ${rows.length - most + 1} more lines`]] : rows;
}

/** @param {import("./data").View} view */
function drawFrame({ graph, layout }, id, here) {
  const kind = `frame kind-${graph.data.boxes[id].kind}${here.length ? "" : " gone"}`;
  return make("rect", { "data-frame": id, class: kind, ...rounded(layout.rects.get(id)), rx: 8 });
}

/** @param {import("./data").View} view */
function drawHead({ graph, layout }, id) {
  const rect = layout.rects.get(id);
  const { label } = graph.data.boxes[id];
  const line = rect.y + layout.head / 2 + layout.sizes.name / 3;
  return make(
    "g",
    { class: "box head", "data-box": id, role: "button", tabindex: -1, "aria-expanded": "true", "aria-label": `scope ${label}, open` },
    make("title", {}, label),
    make("rect", { x: rect.x + 4, y: rect.y + 3, width: textWidth(label, layout.fonts.name) + 30, height: layout.head - 6, rx: 5 }),
    make("text", { x: rect.x + 11, y: line, class: "sign" }, "▾"),
    make("text", { x: rect.x + 24, y: line, class: "name" }, label),
  );
}

/** A node, or a closed scope, as it is in this state.
 * @param {import("./data").View} view */
function drawBox(view, id, here, about) {
  const { graph, layout, state, colour } = view;
  const { nodes, boxes } = graph.data;
  const box = boxes[id];
  const rect = layout.rects.get(id);
  const scope = box.rows.length > 0;
  const all = graph.inside[id];
  const leaving = all.filter((node) => about.leaving.has(node)).length;
  const changed = all.filter((node) => about.touched.has(node) && graph.version(node, state)).length;
  const edited = editWords(view, all.filter((node) => graph.version(node, state)), scope);
  const classes = ["box", scope ? "scope" : "node", `kind-${box.kind}`, colourOf(graph, colour, state, id, here)];
  if (!here.length) classes.push("gone");
  if (!scope && nodes[box.node].bookkeeping) classes.push("bookkeeping");
  if (edited) classes.push("edited");
  if (leaving) classes.push("leaving");
  if (changed && state) classes.push("changed");
  if (all.includes(view.selected)) classes.push("selected");
  if (all.some((node) => about.related.has(node))) classes.push("related");
  const { name: letters, type: small } = layout.sizes;
  const names = graph.labelLines(id);
  const below = under(view, id, here);
  const room = Math.round((rect.height - layout.high(names.length, 0)) / (small + LEADING));
  const lines = linesBelow(view, id, below).slice(0, room);
  const top = rect.y + (rect.height - layout.high(names.length, lines.length) + layout.sizes.pad) / 2;
  const foot = (line) => round(top + names.length * (letters + LEADING) + line * (small + LEADING) + small - 1);
  const shown = names.map((text, i) => (scope && !i ? `▸ ${text}` : text));
  const half = (text, font) => textWidth(text, font) / 2;
  const beside = top - rect.y > small ? 0 : rect.x + layout.corner(id) + 5 + half(shown[0], layout.fonts.name); // the number, where it is not above
  const centre = (text, font) => Math.min(Math.max(rect.x + rect.width / 2, beside), rect.x + rect.width - 6 - half(text, font));
  const values = valuesOf(view, id).map((line) => line.text);
  const fates = scope && colour === "fate" ? box.fates.map(([fate, count]) => `${count} ${fate}`) : [];
  const said = scope
    ? [`scope ${box.label}`, below, ...values, ...fates, "closed"].join(", ")
    : [nodes[box.node].name, here.length ? below : "gone", ...values].join(", ");
  const group = make(
    "g",
    {
      class: classes.filter(Boolean).join(" "),
      "data-box": id,
      "data-count": here.length,
      role: "button",
      tabindex: -1,
      "aria-label": said,
      "aria-expanded": scope ? "false" : null,
      "aria-pressed": scope ? null : String(box.node === view.selected),
    },
    make("title", {}, scope ? said : [nodes[box.node].name, nodes[box.node].meaning].filter(Boolean).join(": ")),
    scope && here.length ? make("rect", { class: "behind", ...rounded({ ...rect, x: rect.x + 3, y: rect.y + 3 }), rx: 6 }) : null,
    make("rect", { ...rounded(rect), rx: scope ? 6 : 5 }),
    graph.numbers(id) ? make("text", { x: rect.x + 5, y: rect.y + small + 2, class: "number" }, graph.numbers(id)) : null,
    make("text", { class: "name" }, ...shown.map((text, i) => make("tspan", { x: centre(text, layout.fonts.name), y: round(top + letters - 1 + i * (letters + LEADING)) }, text))),
    ...lines.map((line, i) => make("text", { x: centre(line.text, layout.fonts.type), y: foot(i), class: line.kind }, line.text)),
  );
  const parts = partsOf(graph, colour, state, id, here);
  if (parts.length > 1) group.append(shares(parts, rect));
  if (edited) group.append(make("text", { x: rect.x + 2, y: rect.y - 3, class: "edit" }, edited));
  return group;
}

/* What a box consists of, as a bar below it: a part for each [class, count]. */
function shares(parts, rect) {
  const group = make("g", { class: "shares" });
  const whole = parts.reduce((sum, [, count]) => sum + count, 0);
  let x = rect.x + 6;
  for (const [name, count] of parts) {
    const width = ((rect.width - 12) * count) / whole;
    group.append(make("rect", { class: name, ...rounded({ x, y: rect.y + rect.height + 4, width, height: 3 }) }));
    x += width;
  }
  return group;
}

/** What the last edit did to a box: `new`, or `2 new, 1 changed` of a scope.
 * @param {import("./data").View} view
 * @param {number[]} here its nodes in this state
 * @param {boolean} scope */
export function editWords({ marks }, here, scope) {
  const words = ["new", "changed"].flatMap((word) => {
    const count = here.filter((node) => marks && marks.get(node) === word).length;
    if (!count) return [];
    return [scope ? `${count} ${word}` : word];
  });
  return words.join(", ");
}

/** What the recorded step says of a box, in the states that show it.
 * @param {import("./data").View} view */
function valuesOf(view, id) {
  const { graph, layout } = view;
  const { boxes, nodes } = graph.data;
  if (!flowedIn(view)) return [];
  return valueLines(boxes[id].rows.length ? boxes[id] : nodes[boxes[id].node], layout.sizes.both);
}

/** The lines below a name: what the node is, and its values. On a projector, which has less room,
 * values replace an op, and follow a time.
 * @param {import("./data").View} view */
export function linesBelow(view, id, below) {
  const type = below && !saysOp(view.graph.data.boxes[id].label, below) ? [{ kind: "type", text: below }] : [];
  const values = valuesOf(view, id);
  return view.layout.sizes.both || view.colour === "time" || !values.length ? [...type, ...values] : values;
}

/** What stands first below the name in a box: how many nodes, or the op, or what the colour is about.
 * @param {import("./data").View} view */
export function under({ graph, state, colour }, id, here) {
  const box = graph.data.boxes[id];
  if (colour === "time" && here.length && box.time) return box.time;
  if (!box.rows.length) {
    if (!here.length) return "";
    const version = graph.version(box.node, state);
    return colour === "device" && version[DEVICE] ? graph.placed(box.node, version) : version[OP];
  }
  const known = graph.inside[id].filter((node) => graph.seen(node, state)).length;
  return here.length === known ? nodesOf(known) : `${thousands(here.length)} of ${nodesOf(known)}`;
}
