/* Start: a viewer for each drawing in the page. */

const viewers = [...document.querySelectorAll(".viewer")].map((root) => {
  const viewer = new Viewer(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
  new Presenter(viewer);
  window.addEventListener("beforeprint", () => printable(viewer));
  return viewer;
});
for (const root of document.querySelectorAll(".predict")) predict(root, viewers);
for (const root of document.querySelectorAll(".still")) {
  still(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
}
for (const element of document.querySelectorAll("main .scroll")) scroller(element);
