/* Predict: the page asks before it shows, and puts predictions beside what was measured.
 *
 * Answers are kept under the questions that they answer, so another report's are not mistaken for
 * them. A browser may keep nothing for a file; then they last as long as the page is open.
 */

import { make, pieces, round } from "./elements.js";

const CLOSE = 0.25; // of the measured number: a prediction that near is right

export function predict(root, viewers) {
  const questions = JSON.parse(document.getElementById(root.dataset.source).textContent);
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const fields = [...root.querySelectorAll("[data-question]")];
  const key = `tflab ${questions.map((question) => `${question.text} ${question.answer}`).join(" ")}`;

  const ask = (on) => {
    part("switch").setAttribute("aria-checked", String(on));
    part("form").hidden = !on;
    document.body.classList.toggle("asking", on);
    viewers.forEach((viewer) => viewer.ask(on));
  };
  const compare = (answers) => {
    const rows = questions.map((question, i) => comparison(question, answers[i]));
    part("rows").replaceChildren(...rows.filter(Boolean));
    part("answers").hidden = false;
    root.classList.add("answered");
  };
  const forget = () => {
    keep(key, null);
    root.classList.remove("answered");
    part("answers").hidden = true;
  };

  part("switch").addEventListener("click", () => ask(part("switch").getAttribute("aria-checked") !== "true"));
  part("look").addEventListener("click", () => {
    const answers = fields.map(answerIn);
    ask(false);
    if (!answers.some(Boolean)) {
      part("switch").focus();
      return;
    }
    keep(key, answers);
    compare(answers);
    part("answers").focus({ preventScroll: true });
    part("answers").scrollIntoView({ block: "nearest" });
  });
  part("again").addEventListener("click", () => {
    forget();
    for (const input of root.querySelectorAll("input")) {
      if (input.type === "radio") input.checked = false;
      else input.value = "";
    }
    ask(true);
    root.querySelector("input").focus();
  });
  const kept = recall(key);
  if (kept) compare(kept);
}

function answerIn(field) {
  const chosen = field.querySelector("input:checked");
  if (chosen) return chosen.value;
  const number = field.querySelector("input[type=number]");
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

function keep(key, answers) {
  try {
    if (answers) localStorage.setItem(key, JSON.stringify(answers));
    else localStorage.removeItem(key);
  } catch {
    // The page holds them as long as it is open.
  }
}

function recall(key) {
  try {
    const kept = JSON.parse(localStorage.getItem(key));
    return Array.isArray(kept) ? kept.map(String) : null;
  } catch {
    return null;
  }
}
