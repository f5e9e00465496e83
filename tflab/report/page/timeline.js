/* Timeline: the stages of a graph and the passes of placement, and what is said of each state. */

import { make, nodesOf, pieces, thousands } from "./elements.js";

const PLAY_SECONDS = 3; // for each state, enough to read its first line

/* The state that a key leads to; undefined for a key that leads nowhere. */
export function goalOf(key, state, last) {
  return { ArrowLeft: state - 1, ArrowRight: state + 1, Home: 0, End: last }[key];
}

/** The number of nodes in a state, and in the one before where that has another.
 * @param {import("./data").State[]} states
 * @param {number} number */
export function nodeCount(states, number) {
  const { count } = states[number];
  const before = number ? states[number - 1].count : count;
  return before === count ? nodesOf(count) : `${thousands(before)} → ${nodesOf(count)}`;
}

export class Timeline {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.part = viewer.part;
    this.states = viewer.data.states;
    this.timer = null;
    this.build(viewer.data);
    const regions = [this.part("states"), this.part("passes")];
    this.buttons = /** @type {HTMLButtonElement[]} */ (regions.flatMap((region) => [...region.querySelectorAll("[data-state]")]));
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.leave(Number(button.dataset.state)));
    }
    this.part("before").addEventListener("click", () => this.leave(viewer.state - 1));
    this.part("after").addEventListener("click", () => this.leave(viewer.state + 1));
    this.part("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    for (const region of regions) region.addEventListener("keydown", (event) => this.key(event));
  }

  /* A button for each stage, and for each pass.
   * @param {import("./data").GraphData} data */
  build({ stops }) {
    for (const stop of stops) {
      this.part("stops").append(make("button", { type: "button", "data-state": stop.first, "data-last": stop.last }, stop.title));
      for (const tick of stop.ticks) {
        this.part("passes").append(make("button", { type: "button", "data-state": tick.state }, tick.title, " ", make("b", {}, tick.change)));
      }
    }
  }

  /* Go to the state that the reader chose, and stop the play. */
  leave(state) {
    this.pause();
    this.viewer.go(state);
  }

  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const goal = goalOf(event.key, this.viewer.state, this.states.length - 1);
    if (goal === undefined) return;
    event.preventDefault();
    this.leave(goal);
    this.current().focus();
  }

  /* The button of the state that is shown: its pass, or else its stage. */
  current() {
    const { state } = this.viewer;
    const own = this.buttons.filter((button) => Number(button.dataset.state) === state);
    return own.find((button) => button.dataset.last === undefined) || own[0] || this.buttons[0];
  }

  play() {
    if (this.viewer.state === this.viewer.last) this.viewer.go(0);
    this.timer = setInterval(() => {
      this.viewer.go(this.viewer.state + 1);
      if (this.viewer.state === this.viewer.last) this.pause();
    }, 1000 * PLAY_SECONDS);
    this.part("play").textContent = "❚❚ Pause";
    this.part("play").setAttribute("aria-pressed", "true");
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.part("play").textContent = "▶ Play";
    this.part("play").setAttribute("aria-pressed", "false");
  }

  show() {
    const { state, last, data } = this.viewer;
    this.part("before").disabled = state === 0;
    this.part("after").disabled = state === last;
    for (const button of this.buttons) {
      const first = Number(button.dataset.state);
      button.hidden = first > last;
      if (first <= state && state <= Number(button.dataset.last ?? first)) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
    this.part("passes").hidden = !data.stops.some((stop) => stop.ticks.length && stop.first <= state && state <= stop.last);
    const { title, about, lines } = this.states[state];
    this.part("title").textContent = title;
    this.part("count").textContent = nodeCount(this.states, state);
    this.part("about").textContent = about;
    this.part("lines").replaceChildren(...lines.map((line) => make("li", {}, ...pieces(line))));
    const row = this.part("passes");
    if (!row.hidden) row.scrollTo({ left: this.current().offsetLeft - row.clientWidth / 2, behavior: "instant" });
    this.part("caption").scrollTop = 0;
  }
}
