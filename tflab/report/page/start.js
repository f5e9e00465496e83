/* Start: a viewer for each drawing in the page. */

import { Viewer } from "./viewer.js";
import { printable } from "./prints.js";
import { Presenter } from "./present.js";
import { folds, script } from "./script.js";
import { Predictor } from "./predict.js";
import { folded } from "./folded.js";
import { Slices } from "./slices.js";

/** The data in a script element, which are compressed if they are large.
 * @param {string} id */
async function embedded(id) {
  const element = /** @type {HTMLScriptElement} */ (document.getElementById(id));
  if (element.type === "application/json") return JSON.parse(element.textContent);
  const bytes = Uint8Array.from(atob(element.textContent), (char) => char.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

/** @param {string} selector
 * @returns {HTMLElement[]} */
function all(selector) {
  return [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(selector))];
}

async function start() {
  const viewers = [];
  for (const root of all(".viewer")) {
    const viewer = new Viewer(root, await embedded(root.dataset.source));
    viewers.push(viewer);
    new Presenter(viewer);
    window.addEventListener("beforeprint", () => printable(viewer));
    const beside = /** @type {HTMLElement | null} */ (root.closest(".annotated"));
    if (beside) script(beside, await embedded(beside.dataset.source), viewer);
  }
  all(".script").forEach(folds);
  for (const root of all(".predict")) {
    const predictor = new Predictor(root, root.querySelector('[data-part="switch"]'), (on) => {
      document.body.classList.toggle("asking", on);
      viewers.forEach((viewer) => viewer.ask(on));
    });
    predictor.put(await embedded(root.dataset.source));
  }
  for (const figure of all(".picture[data-source]")) new Slices(figure, await embedded(figure.dataset.source));
  folded();
}

start();
