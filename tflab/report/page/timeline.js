/* Timeline: the stops of a graph and the passes between them, and what is said of each state. */

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
    const region = this.part("states");
    this.build(viewer.data);
    this.buttons = /** @type {HTMLButtonElement[]} */ ([...region.querySelectorAll("[data-state]")]);
    for (const button of this.buttons) {
      button.addEventListener("click", () => this.leave(Number(button.dataset.state)));
    }
    this.part("before").addEventListener("click", () => this.leave(viewer.state - 1));
    this.part("after").addEventListener("click", () => this.leave(viewer.state + 1));
    this.part("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
    region.addEventListener("keydown", (event) => this.key(event));
  }

  /* A button for each stop, and for each pass between them.
   * @param {import("./data").GraphData} data */
  build({ stops, idle }) {
    stops.forEach((stop, number) => {
      const where = { "data-state": stop.entry, "data-first": stop.first, "data-last": stop.last };
      this.part("stops").append(make("button", { type: "button", ...where }, make("b", {}, `${number + 1}`), ` ${stop.title}`));
    });
    const rows = stops.filter((stop) => stop.ticks.length).map((stop) => {
      const buttons = stop.ticks.flatMap((tick) => {
        const again = tick.again ? [" ", make("i", {}, tick.again)] : [];
        return make("button", { type: "button", "data-state": tick.state }, tick.title, ...again, " ", make("b", {}, tick.change));
      });
      const label = `${stop.title}, pass by pass`;
      return make("div", { class: "passes", role: "group", "aria-label": label }, make("span", {}, `${stop.title} by`), ...buttons);
    });
    const others = idle && make("details", { class: "idle" }, make("summary", {}, `${idle.heading} ${idle.about}`), ...idle.lines.map((line) => make("p", {}, line)));
    this.part("passes").append(...rows, ...(others ? [others] : []));
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
