/* Patch: the picture in the page becomes the next one. What is the same in both stays, so that the
 * browser lays out and paints only what changes. */

/** @param {Element} shown the picture in the page
 * @param {Element} next the picture that it becomes; its parts are moved */
export function patch(shown, next) {
  attributes(shown, next);
  [...next.children].forEach((group, place) => {
    attributes(shown.children[place], group);
    children(shown.children[place], group);
  });
}

function attributes(shown, next) {
  for (const name of next.getAttributeNames()) {
    const value = next.getAttribute(name);
    if (shown.getAttribute(name) !== value) shown.setAttribute(name, value);
  }
}

/* The parts of a group, in the order of the next picture. */
function children(shown, next) {
  const known = new Map([...shown.children].map((part) => [keyOf(part), part]));
  const parts = [...next.children]; // which leave `next` as they are inserted
  let place = shown.firstElementChild;
  for (const part of parts) {
    const same = known.get(keyOf(part));
    const wanted = same && same.isEqualNode(part) ? same : part;
    if (wanted === place) place = place.nextElementSibling;
    else shown.insertBefore(wanted, place);
  }
  while (place) {
    const gone = place;
    place = place.nextElementSibling;
    gone.remove();
  }
}

/* What a part is about: a box, an edge from box to box, an arrowhead, or a frame at its corner. */
function keyOf(part) {
  return (part.dataset.box ?? part.dataset.edge ?? part.id) || `${part.getAttribute("x")} ${part.getAttribute("y")}`;
}
