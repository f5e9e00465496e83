/* Text: a program as coloured pieces, and what the keys of the editor do to it. */

const INDENT = "    ";
const PIECES = /(?<comment>#[^\n]*)|(?<text>(?:\b[rbfRBF]{1,2})?(?:"""(?:[^\\]|\\[^])*?(?:"""|$)|'''(?:[^\\]|\\[^])*?(?:'''|$)|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?))|(?<number>\b\d[\w.]*)|(?<word>\b(?:and|as|assert|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|not|or|pass|raise|return|try|while|with|yield|True|False|None)\b)/g;

/** The lines of a program, each as [kind, text]; the kind of what has no colour is empty.
 * @param {string} program
 * @returns {[kind: string, text: string][][]} */
export function coloured(program) {
  /** @type {[string, string][][]} */
  const lines = [[]];
  const add = (kind, text) => {
    text.split("\n").forEach((part, i) => {
      if (i) lines.push([]);
      if (part) lines[lines.length - 1].push([kind, part]);
    });
  };
  let end = 0;
  for (const match of program.matchAll(PIECES)) {
    add("", program.slice(end, match.index));
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    add(kind, match[0]);
    end = match.index + match[0].length;
  }
  add("", program.slice(end));
  return lines;
}

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
