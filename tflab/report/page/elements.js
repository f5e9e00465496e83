/* Elements: how anything gets into the page. Every name is set as text, never as markup. */

const SVG = "http://www.w3.org/2000/svg";
const IN_SVG = new Set(["svg", "g", "rect", "path", "text", "title", "defs", "marker", "line", "tspan"]);

export function make(name, attributes, ...children) {
  const element = IN_SVG.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/* A text that may break after the scopes in its names, and not within one of them. */
export function pieces(text) {
  return text.split(/(?<=\/)/).flatMap((piece, i) => (i ? [make("wbr"), piece] : [piece]));
}

/* The width of a text in pixels; `font` as in CSS. */
const widths = new Map();
let canvas = null;
export function textWidth(text, font) {
  const key = font + text;
  if (!widths.has(key)) {
    canvas = canvas || document.createElement("canvas").getContext("2d");
    canvas.font = font;
    widths.set(key, canvas.measureText(text).width);
  }
  return widths.get(key);
}

/* The least and the greatest of many numbers: Math.min and Math.max fail with some 100,000. */
export const least = (numbers) => numbers.reduce((a, b) => Math.min(a, b), Infinity);
export const most = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0);

export const round = (value) => Math.round(value * 10) / 10;

/** A count as Python writes it: 6,122 nodes.
 * @param {number} count
 * @returns {string} */
export const nodesOf = (count) => `${thousands(count)} nodes`;

/** @param {number} count
 * @returns {string} */
export const thousands = (count) => count.toLocaleString("en");

export function rounded(rect) {
  return { x: round(rect.x), y: round(rect.y), width: round(rect.width), height: round(rect.height) };
}
