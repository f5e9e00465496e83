/* Pinned: a version that stays beside the one that is edited. */

import { Life } from "../../life/page/life.js";

const OFF = "Since your last edit";
const ON = "Compared with the pinned version";

export class Pinned {
  /** @param {(name: string) => any} part
   * @param {(body: object) => Promise<Response>} post what tells the server */
  constructor(part, post) {
    this.part = part;
    this.post = post;
    this.asked = null; // its program and switches, while there is one
    this.life = new Life(part("pinned-drawing"), part("pinned-parts"), part("pinned-viewer"));
    part("unpin").addEventListener("click", () => this.leave());
  }

  /** @param {{ text: string }} asked
   * @param {any} message its last stage
   * @returns {Promise<string>} what to say of it */
  async pin(asked, message) {
    const response = await this.post({ on: true });
    if (!response.ok) return response.text();
    this.asked = asked;
    this.show(true);
    this.part("pinned-text").textContent = asked.text;
    this.part("pinned-switches").textContent = switches(asked);
    this.life.draw(message);
    this.life.list(message.parts);
    return "Pinned: change a line or a switch, and both stand beside one another.";
  }

  async leave() {
    await this.post({ on: false });
    this.asked = null;
    this.show(false);
    this.part("pin").focus();
  }

  show(on) {
    this.part("pinned").hidden = !on;
    this.part("now").hidden = !on;
    this.part("pin").textContent = on ? "Pin this one" : "Pin";
    this.part("since-title").textContent = on ? ON : OFF;
  }
}

/** The switches of a version in words.
 * @param {any} asked */
export function switches({ optimiser, batch_size, devices, xla, without }) {
  const words = [optimiser, `batch size ${batch_size}`, `${devices} CPU device${devices > 1 ? "s" : ""}`];
  if (xla) words.push("XLA");
  if (without.length) words.push(`without ${without.join(", ")}`);
  return words.join("; ");
}
