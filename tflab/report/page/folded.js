/* Folded: a chapter opens where a link leads to it, and all of them on paper; the contents are open
 * where they have a column. */

/** @param {string} hash of an address */
function openChapter(hash) {
  const chapter = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  const details = chapter && chapter.querySelector(":scope > details");
  if (!details) return;
  details.setAttribute("open", "");
  chapter.scrollIntoView();
}

export function folded() {
  const contents = document.querySelector(".contents");
  const wide = window.matchMedia("(min-width: 75rem)");
  const fit = () => contents && contents.toggleAttribute("open", wide.matches);
  wide.addEventListener("change", fit);
  fit();
  openChapter(location.hash);
  window.addEventListener("hashchange", () => openChapter(location.hash));
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("section > details")) details.setAttribute("open", "");
  });
}
