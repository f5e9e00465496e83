/* Start: a viewer for each drawing in the page. */

for (const root of document.querySelectorAll(".viewer")) {
  const viewer = new Viewer(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
  new Presenter(viewer);
  window.addEventListener("beforeprint", () => printable(viewer));
}
for (const root of document.querySelectorAll(".predict")) predict(root);
for (const root of document.querySelectorAll(".still")) {
  still(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
}
