/* Text: what the keys of the editor do to a program. */

const INDENT = "    ";

/** What Tab makes of a selection: the part of the text to replace, by what, and the selection then.
 * @param {string} text
 * @param {number} start
 * @param {number} end
 * @param {boolean} back with Shift */
export function indented(text, start, end, back) {
  if (start === end && !back) {
    const column = start - (text.lastIndexOf("\n", start - 1) + 1);
    const spaces = INDENT.slice(column % INDENT.length);
    return { from: start, to: end, by: spaces, start: start + spaces.length, end: start + spaces.length };
  }
  const from = text.lastIndexOf("\n", start - 1) + 1;
  const last = end > start && text[end - 1] === "\n" ? end - 1 : end;
  const stop = text.indexOf("\n", last);
  const to = stop < 0 ? text.length : stop;
  const lines = text.slice(from, to).split("\n");
  const moved = lines.map((line) => (back ? line.replace(/^ {1,4}/, "") : line && INDENT + line));
  const by = moved.join("\n");
  const first = moved[0].length - lines[0].length;
  return { from, to, by, start: Math.max(from, start + first), end: end + by.length - (to - from) };
}

/** The white space with which the line after this place begins: that of the line before, and more
 * behind a colon.
 * @param {string} text
 * @param {number} place */
export function indentAfter(text, place) {
  const line = text.slice(text.lastIndexOf("\n", place - 1) + 1, place);
  return line.match(/^\s*/)[0] + (/:\s*$/.test(line) ? INDENT : "");
}
