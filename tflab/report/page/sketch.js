/* Sketch: elements as plain objects, which are cheap to make and to compare. The picture in the page
 * becomes the next one by changes only where their sketches differ. */

import { make } from "./elements.js";

/** @typedef {{ name: string, attributes: Record<string, any>, children: (Sketch | string)[] }} Sketch */

const sketches = new WeakMap(); // element -> the sketch that it shows

/** @param {string} name
 * @param {Record<string, any>} attributes an element has those that are not null
 * @param {(Sketch | string | null)[]} children
 * @returns {Sketch} */
export function sketch(name, attributes, ...children) {
  return { name, attributes, children: children.filter((child) => child !== null) };
}

/** @param {Sketch} next
 * @returns {any} its element */
export function render(next) {
  const element = made(next);
  sketches.set(element, next);
  return element;
}

/** Change an element of `render` so that it shows another sketch.
 * @param {Element} element
 * @param {Sketch} next */
export function rerender(element, next) {
  change(element, sketches.get(element), next);
  sketches.set(element, next);
}

function made(child) {
  if (typeof child === "string") return document.createTextNode(child);
  return make(child.name, child.attributes, ...child.children.map(made));
}

function change(node, before, next) {
  if (typeof next === "string") {
    if (before !== next) node.data = next;
    return;
  }
  changeAttributes(node, before.attributes, next.attributes);
  if (!alike(before.children, next.children)) {
    exchange(node, before.children, next.children);
    return;
  }
  let child = node.firstChild;
  for (let place = 0; child; place++, child = child.nextSibling) change(child, before.children[place], next.children[place]);
}

function changeAttributes(node, before, next) {
  for (const name of Object.keys(next)) {
    const value = next[name];
    if ((before[name] ?? null) === value) continue;
    if (value === null) node.removeAttribute(name);
    else node.setAttribute(name, value);
  }
  for (const name of Object.keys(before)) {
    if (!(name in next)) node.removeAttribute(name);
  }
}

/* What leaves goes first, so that what stays need not be moved. */
function exchange(node, before, next) {
  const nodes = [...node.childNodes];
  const keys = next.map(keyOf);
  const wanted = new Set(keys);
  const known = new Map();
  before.forEach((child, place) => {
    const key = keyOf(child, place);
    if (wanted.has(key)) known.set(key, place);
    else nodes[place].remove();
  });
  let following = node.firstChild;
  next.forEach((child, number) => {
    const place = known.get(keys[number]);
    if (place !== undefined) change(nodes[place], before[place], child);
    const own = place === undefined ? made(child) : nodes[place];
    if (own === following) following = following.nextSibling;
    else node.insertBefore(own, following);
  });
}

/* Whether the same parts stand in the same order. */
function alike(before, next) {
  return before.length === next.length && next.every((child, place) => child.name === before[place].name && subjectOf(child) === subjectOf(before[place]));
}

function keyOf(child, place) {
  return subjectOf(child) ?? `${place} ${child.name}`;
}

/* The box, edge, frame or arrowhead that a part stands for; a part of one of these stands for none. */
function subjectOf({ attributes }) {
  return attributes && (attributes["data-box"] ?? attributes["data-edge"] ?? attributes["data-frame"] ?? attributes.id);
}
