/* Saved: what a live page showed, without its server. */

import { Life } from "./life.js";
import { make } from "../../report/page/elements.js";
import { Predictor } from "../../report/page/predict.js";
import { Editor } from "./editor.js";
import { lighting } from "./lighting.js";
import { Pinned } from "./pinned.js";
import { inWords } from "./switches.js";

/** @type {(name: string) => any} */
const part = (name) => document.querySelector(`[data-part="${name}"]`);
const { now, pinned, seen } = JSON.parse(document.getElementById("settings").textContent);
if (pinned) new Pinned(part).show(pinned.asked, pinned.told, seen.pinnedGoal, seen.pinned);
part("since").innerHTML = now.told.since ?? "<p>It is the first version.</p>"; // the server has escaped every name in it
part("switches").textContent = `${inWords(now.asked)}.`;
part("now-switches").textContent = inWords(now.asked);
part("printing").hidden = !seen.printed;
part("printed").textContent = seen.printed;
const life = new Life(part("life"), part("parts"), part("viewer"));
life.draw(now.told, seen.goal, seen.now);
life.list(now.told.parts);
const editor = new Editor(part, () => {});
editor.text = now.asked.text;
editor.colour(life.viewer.graph);
lighting(part, editor, life);
if (seen.answers) {
  new Predictor(part("predict"), make("button"), () => {}, { live: true }).put(now.told.questions, seen.answers);
  part("again").hidden = true;
}
