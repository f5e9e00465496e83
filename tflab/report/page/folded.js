/* Folded: a chapter opens where a link leads to it, and all of them on paper. */

/** @param {string} hash of an address */
function openChapter(hash) {
  const chapter = hash && document.getElementById(decodeURIComponent(hash.slice(1)));
  const details = chapter && chapter.querySelector(":scope > details");
  if (!details) return;
  details.setAttribute("open", "");
  chapter.scrollIntoView();
}

export function folded() {
  openChapter(location.hash);
  window.addEventListener("hashchange", () => openChapter(location.hash));
  window.addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("section > details")) details.setAttribute("open", "");
  });
}
