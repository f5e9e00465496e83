/* Elements: how anything gets into the page. Every name is set as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 34; // characters of a label in the drawing; the panel has all of them

function make(name, attributes, ...children) {
  const inSvg = ["svg", "g", "rect", "path", "text", "title", "defs", "marker", "line"].includes(name);
  const element = inSvg ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function shortened(text) {
  if (text.length <= LONGEST) return text;
  const tail = Math.floor(LONGEST / 2);
  return text.slice(0, LONGEST - tail - 1) + "…" + text.slice(-tail);
}

function time(ns) {
  for (const [unit, size] of [["s", 1e9], ["ms", 1e6], ["us", 1e3]]) {
    if (ns >= size) return `${(ns / size).toPrecision(3)} ${unit}`;
  }
  return `${Math.round(ns)} ns`;
}

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();
function textWidth(text, font) {
  const key = font + text;
  if (!widths.has(key)) {
    canvas.font = font;
    widths.set(key, canvas.measureText(text).width);
  }
  return widths.get(key);
}
