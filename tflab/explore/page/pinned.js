/* Pinned: a version that stays beside the one that is edited. */

import { Life } from "./life.js";
import { inWords } from "./switches.js";

const OFF = "Since your last edit";
const ON = "Compared with the pinned version";

export class Pinned {
  /** @param {(name: string) => any} part
   * @param {(body: object) => Promise<Response>} [post] what tells the server, if there is one */
  constructor(part, post) {
    this.part = part;
    this.post = post;
    this.asked = null; // its program and switches, while there is one
    this.life = new Life(part("pinned-drawing"), part("pinned-parts"), part("pinned-viewer"));
    part("unpin")?.addEventListener("click", () => this.leave());
    window.addEventListener("beforeprint", () => (part("pinned-version").open = true));
  }

  /** @param {{ text: string }} asked
   * @param {any} message its last stage
   * @param {{ stage: string, title: string } | null} goal the state to show
   * @param {any} seen how its drawing is seen
   * @returns {Promise<string>} what to say of it */
  async pin(asked, message, goal, seen) {
    const response = await this.post({ on: true });
    if (!response.ok) return response.text();
    this.show(asked, message, goal, seen);
    this.part("pin").textContent = "Pin this one";
    return "Pinned. Change a line or a switch to see both versions side by side.";
  }

  /** @param {{ text: string }} asked
   * @param {any} message its last stage
   * @param {{ stage: string, title: string } | null} goal the state to show
   * @param {any} seen how its drawing is seen */
  show(asked, message, goal, seen) {
    this.asked = asked;
    this.head(true);
    this.part("pinned-text").textContent = asked.text;
    this.part("pinned-switches").textContent = inWords(asked);
    this.life.draw({ ...message, marks: {} }, goal, seen); // what is marked is new in the other one
    this.life.list(message.parts);
  }

  async leave() {
    await this.post({ on: false });
    this.asked = null;
    this.head(false);
    this.part("pin").textContent = "Pin";
    this.part("pin").focus();
  }

  head(on) {
    this.part("pinned").hidden = !on;
    this.part("now").hidden = !on;
    this.part("since-title").textContent = on ? ON : OFF;
  }
}
