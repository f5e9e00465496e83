/* Predict: the page asks before it shows, and puts predictions beside what was measured. */

import { make, pieces, round } from "./elements.js";

const CLOSE = 0.25; // of the measured number: a prediction that near is right

export class Predictor {
  /** @param {HTMLElement} root
   * @param {HTMLElement} toggle the switch
   * @param {(on: boolean) => void} asks hides the results, or shows them
   * @param {{ live?: boolean }} [page] a live page gets new questions: its switch stays on */
  constructor(root, toggle, asks, { live = false } = {}) {
    this.root = root;
    this.toggle = toggle;
    this.asks = asks;
    this.live = live;
    /** @type {(name: string) => any} */
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.questions = [];
    toggle.addEventListener("click", () => {
      this.turn(!this.on);
      this.ask(this.on);
    });
    this.part("look").addEventListener("click", () => this.look());
  }

  get on() {
    return this.toggle.getAttribute("aria-checked") === "true";
  }

  turn(on) {
    this.toggle.setAttribute("aria-checked", String(on));
  }

  /** @param {import("./data").Question[]} questions */
  put(questions) {
    this.questions = questions;
    this.part("questions").replaceChildren(...questions.map(field));
    this.compare(null);
  }

  /* Take the questions away, with what was answered. */
  clear() {
    this.part("form").hidden = true;
    this.questions = [];
    this.compare(null);
  }

  ask(on) {
    this.part("form").hidden = !on || !this.questions.length;
    this.asks(on);
  }

  look() {
    const answers = [...this.part("questions").children].map(answerIn);
    if (!this.live) this.turn(false);
    this.ask(false);
    if (!answers.some(Boolean)) {
      this.toggle.focus();
      return;
    }
    this.compare(answers);
    this.part("answers").focus({ preventScroll: true });
    this.part("answers").scrollIntoView({ block: "nearest" });
  }

  /** @param {string[] | null} answers */
  compare(answers) {
    const rows = this.questions.map((question, i) => comparison(question, answers?.[i]));
    this.part("rows").replaceChildren(...rows.filter(Boolean));
    this.part("answers").hidden = !answers;
    this.root.classList.toggle("answered", Boolean(answers));
  }
}

/** A question as a field of the form.
 * @param {import("./data").Question} question
 * @param {number} place */
function field({ text, options, unit }, place) {
  const name = `question-${place}`;
  const choices = options.map((option) => make("label", {}, make("input", { type: "radio", name, value: option }), " ", ...pieces(option)));
  const number = make("label", {}, make("input", { type: "number", min: 0, step: "any", "aria-label": text }), ` ${unit}`);
  return make("fieldset", {}, make("legend", {}, ...pieces(text)), ...(options.length ? choices : [number]));
}

function answerIn(asked) {
  const chosen = asked.querySelector("input:checked");
  if (chosen) return chosen.value;
  const number = asked.querySelector("input[type=number]");
  return number ? number.value : "";
}

/* A row of prediction, measurement and reason; none for a question that was left open. */
function comparison(question, answer) {
  if (!answer) return null;
  const unit = question.unit ? ` ${question.unit}` : "";
  const [right, verdict] = judged(question, answer);
  return make(
    "tr",
    {},
    make("td", {}, ...pieces(question.text)),
    make("td", { class: right ? "right" : "wrong" }, ...pieces(answer), `${unit}${verdict}`),
    make("td", {}, ...pieces(question.answer), unit),
    make("td", {}, ...pieces(question.reason)),
  );
}

/** Whether an answer is right, and the words for that.
 * @param {import("./data").Question} question
 * @param {string} answer
 * @returns {[right: boolean, words: string]} */
export function judged(question, answer) {
  if (question.options.length) {
    const right = answer === question.answer;
    return [right, right ? ": right" : ": not this one"];
  }
  const [predicted, measured] = [Number(answer), Number(question.answer)];
  if (predicted === measured) return [true, ": right"];
  const off = Math.abs(predicted - measured);
  const near = off <= CLOSE * measured;
  return [near, `: ${near ? "close, " : ""}${round(off)} too ${predicted > measured ? "high" : "low"}`];
}
