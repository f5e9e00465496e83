/* Scroller: a table or drawing is a stop for the keyboard only while it scrolls. */

export function scroller(element) {
  const note = () => {
    const scrolls = element.scrollWidth > element.clientWidth + 1;
    if (scrolls) element.setAttribute("tabindex", "0");
    else element.removeAttribute("tabindex");
  };
  new ResizeObserver(note).observe(element);
  if (element.firstElementChild) new ResizeObserver(note).observe(element.firstElementChild);
}
