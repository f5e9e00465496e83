/* Start: a viewer for each drawing in the page. */

import { Viewer } from "./viewer.js";
import { printable } from "./prints.js";
import { Presenter } from "./present.js";
import { still } from "./still.js";
import { scroller } from "./scroller.js";
import { script } from "./script.js";
import { Predictor } from "./predict.js";
import { folded } from "./folded.js";

const viewers = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".viewer"))].map((root) => {
  const viewer = new Viewer(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
  new Presenter(viewer);
  window.addEventListener("beforeprint", () => printable(viewer));
  const beside = /** @type {HTMLElement | null} */ (root.closest(".annotated"));
  if (beside) script(beside, JSON.parse(document.getElementById(beside.dataset.source).textContent), viewer);
  return viewer;
});
for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".predict"))) {
  const predictor = new Predictor(root, root.querySelector('[data-part="switch"]'), (on) => {
    document.body.classList.toggle("asking", on);
    viewers.forEach((viewer) => viewer.ask(on));
  });
  predictor.put(JSON.parse(document.getElementById(root.dataset.source).textContent));
}
for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".still"))) {
  still(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
}
for (const element of document.querySelectorAll("main .scroll")) scroller(element);
folded();
