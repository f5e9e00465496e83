/* Script: a program line by line beside a drawing. A line that is pointed at lights its nodes up; the
 * line of a node that is clicked stands out. Lines without time are folded. */

const EDGE = 40; // pixels: a line nearer to the edge than that is brought to the middle

/** Show or hide the lines of a part that is folded.
 * @param {Element} lines
 * @param {boolean} open */
function unfold(lines, open) {
  const button = lines.previousElementSibling && lines.previousElementSibling.querySelector("button");
  if (!button) return;
  lines.toggleAttribute("hidden", !open);
  button.setAttribute("aria-expanded", String(open));
}

/** @param {HTMLElement} paper */
export function folds(paper) {
  paper.addEventListener("click", (event) => {
    const fold = event.target instanceof Element && event.target.closest(".fold");
    if (fold) unfold(fold.nextElementSibling, fold.nextElementSibling.hasAttribute("hidden"));
  });
}

/** @param {HTMLElement} root
 * @param {number[][]} nodes of each line
 * @param {import("./viewer.js").Viewer} viewer */
export function script(root, nodes, viewer) {
  const paper = /** @type {HTMLElement} */ (root.querySelector(".script"));
  const rows = [.../** @type {NodeListOf<HTMLElement>} */ (paper.querySelectorAll("[data-line]"))];
  const lineOf = new Map(nodes.flatMap((made, line) => made.map((node) => [node, line])));
  const nodesAt = (target) => {
    const row = target instanceof Element && /** @type {HTMLElement} */ (target.closest("[data-line]"));
    return row ? nodes[Number(row.dataset.line)] : [];
  };
  paper.addEventListener("mouseover", (event) => viewer.light(nodesAt(event.target)));
  paper.addEventListener("mouseleave", () => viewer.light([]));
  paper.addEventListener("click", (event) => {
    const made = nodesAt(event.target);
    if (made.length) viewer.select(made[0], true);
  });
  viewer.root.addEventListener("selected", () => {
    rows.forEach((row) => row.classList.remove("selected"));
    if (viewer.selected === null) return;
    // A node of the runtime has no line; those have one whose work it does.
    const alike = [viewer.selected, ...viewer.data.nodes[viewer.selected].related];
    const line = alike.map((node) => lineOf.get(node)).find((number) => number !== undefined);
    if (line === undefined) return;
    unfold(rows[line].closest("tbody"), true);
    rows[line].classList.add("selected");
    const top = rows[line].offsetTop - paper.scrollTop;
    if (top < EDGE || top > paper.clientHeight - EDGE) paper.scrollTop += top - paper.clientHeight / 2;
  });
}
