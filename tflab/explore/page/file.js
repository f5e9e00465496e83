/* File: the file that the page follows, if there is one. */

const LOOK_MS = 700; // between two looks at it

export class ProgramFile {
  /** @param {{ text: string, mark: string | null }} start
   * @param {import("./explore.js").Page} page */
  constructor(start, page) {
    this.known = start.mark; // of the text that the page has taken
    this.taken = start.text;
    this.page = page;
    this.lost = false;
  }

  follow() {
    if (this.known !== null) setInterval(() => this.look(), LOOK_MS);
  }

  /* Take the file as an editor has left it, unless there are edits in the page. */
  async look() {
    const response = await fetch(`/file?known=${this.known}`).catch(() => null);
    if (!response) return;
    if (this.lost && response.ok) this.page.say(""); // it is back
    this.lost = !response.ok;
    if (response.status === 204) return;
    if (this.lost) {
      this.page.say(await response.text());
      return;
    }
    const { text, mark } = await response.json();
    if (mark === this.known) return;
    if (![this.taken, text].includes(this.page.text)) {
      this.page.say("The file has changed. Undo your edits here to take it.");
      return;
    }
    this.known = mark;
    this.taken = text;
    this.page.take(text);
  }
}
