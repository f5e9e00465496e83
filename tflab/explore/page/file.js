/* File: the file that the page follows and saves to, if there is one. */

const LOOK_MS = 700; // between two looks at it

export class ProgramFile {
  /** @param {{ name: string, text: string, mark: string | null }} start
   * @param {HTMLButtonElement | null} button that saves
   * @param {import("./explore.js").Page} page */
  constructor(start, button, page) {
    this.name = start.name;
    this.exists = start.mark !== null;
    this.known = start.mark; // of the text that the page has taken or saved
    this.saved = start.text;
    this.other = null; // the mark of another text in the file, of which the reader was told
    this.button = button;
    this.page = page;
    this.lost = false;
    button?.addEventListener("click", () => this.save());
    window.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "s") {
        event.preventDefault();
        if (this.exists) this.save();
      }
    });
  }

  follow() {
    if (this.exists) setInterval(() => this.look(), LOOK_MS);
  }

  /* Whether the page has edits that are not saved; its title shows it. */
  unsaved() {
    const unsaved = this.exists && this.page.text !== this.saved;
    document.title = `${unsaved ? "• " : ""}${this.name}, live`;
    if (this.button) this.button.disabled = !unsaved;
    return unsaved;
  }

  async save() {
    const { text } = this.page;
    const response = await this.page.post("/save", { text, known: this.other ?? this.known });
    if (response.ok) {
      this.has(text, (await response.json()).mark);
      this.page.say("Saved.");
    } else if (response.status === 409) {
      const { message, mark } = await response.json();
      this.other = mark; // so that saving again replaces it
      this.page.say(message);
    } else this.page.say(await response.text());
    this.unsaved();
  }

  /* Take the file as another editor has left it, unless there are edits here that are not saved. */
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
    if (this.unsaved()) {
      this.other = mark;
      this.page.say("The file was changed elsewhere. Save to replace it, or undo your edits to take it.");
      return;
    }
    this.has(text, mark);
    this.page.take(text);
  }

  /* The file and the page have the same text. */
  has(text, mark) {
    this.known = mark;
    this.saved = text;
    this.other = null;
  }
}
