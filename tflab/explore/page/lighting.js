/* Lighting: a line, its boxes and its rows light up together. */

/** @param {(name: string) => any} part
 * @param {import("./editor.js").Editor} editor
 * @param {import("./life.js").Life} life */
export function lighting(part, editor, life) {
  /** @param {number[]} lines */
  const light = (lines) => {
    editor.light(new Set(lines));
    life.light(new Set(lines));
  };
  part("editor").addEventListener("mousemove", (event) => {
    const line = editor.lineAt(event.clientY);
    light(line !== null && life.viewer?.graph.colourOfLine.has(line) ? [line] : []);
  });
  part("life").addEventListener("mouseover", (event) => {
    const box = event.target.closest("[data-box]");
    light(box ? life.viewer.graph.linesOf(Number(box.dataset.box)) : []);
  });
  part("parts").addEventListener("mouseover", (event) => {
    const row = event.target.closest("[data-of-lines]");
    light(row ? row.dataset.ofLines.split(" ").map(Number) : []);
  });
  for (const name of ["editor", "life", "parts"]) part(name).addEventListener("mouseleave", () => light([]));
}
