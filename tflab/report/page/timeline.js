/* Timeline: the stops of a graph and the passes between them, and what is said of each state. */

import { make, pieces } from "./elements.js";

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
  return before === count ? `${count} nodes` : `${before} → ${count} nodes`;
}

export class Timeline {
  /** @param {import("./viewer.js").Viewer} viewer */
  constructor(viewer) {
    this.viewer = viewer;
    this.part = viewer.part;
    this.states = viewer.data.states;
    this.timer = null;
    const region = this.part("states");
    this.buttons = /** @type {HTMLButtonElement[]} */ ([...region.querySelectorAll("[data-state]")]);
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.leave(Number(button.dataset.state)));
    }
    this.part("before").addEventListener("click", () => this.leave(viewer.state - 1));
    this.part("after").addEventListener("click", () => this.leave(viewer.state + 1));
    this.part("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    region.addEventListener("keydown", (event) => this.key(event));
  }

  /* Go to a state because the reader says so, which ends the play. */
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
    if (this.part("states").contains(document.activeElement)) this.current().focus();
  }

  /* The button of the state that is shown: its pass, or else its stop. */
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
    this.playing(true);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.playing(false);
  }

  playing(on) {
    this.part("play").textContent = on ? "❚❚ Pause" : "▶ Play";
    this.part("play").setAttribute("aria-pressed", String(on));
  }

  show() {
    const { state } = this.viewer;
    this.part("before").disabled = state === 0;
    this.part("after").disabled = state === this.viewer.last;
    for (const button of this.buttons) {
      button.hidden = Number(button.dataset.first ?? button.dataset.state) > this.viewer.last;
      const { first, last } = button.dataset;
      const here = last === undefined ? Number(button.dataset.state) === state : Number(first) <= state && state <= Number(last);
      if (here) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
    this.caption(state);
  }

  caption(number) {
    const state = this.states[number];
    this.part("title").textContent = state.title;
    this.part("count").textContent = nodeCount(this.states, number);
    this.part("about").textContent = state.about;
    this.part("lines").replaceChildren(...state.lines.map((line) => make("li", {}, ...pieces(line))));
  }

  /* Keep room for the longest caption, so that the drawing stays where it is from state to state. */
  reserve() {
    const box = this.part("caption");
    box.style.minHeight = "";
    const heights = this.states.map((_, number) => {
      this.caption(number);
      return box.offsetHeight;
    });
    box.style.minHeight = `${Math.max(...heights)}px`;
    this.caption(this.viewer.state);
  }
}
