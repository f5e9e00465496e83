/* A page without a browser: elements found by the name of their part, and a `fetch` whose answers the
 * test gives, in any order. */

class FakeElement {
  constructor(name) {
    this.name = name;
    this.dataset = {};
    this.attributes = new Map();
    this.listeners = new Map();
    this.children = [];
    this.hidden = false;
    this.disabled = false;
    this.open = false;
    this.textContent = "";
    this.value = "";
  }

  addEventListener(type, listener) {
    this.listeners.set(type, [...(this.listeners.get(type) ?? []), listener]);
  }

  /* What the reader does; returns what the listeners return, so that a test can wait for them. */
  happens(type, event = {}) {
    const given = { preventDefault() {}, target: this, ...event };
    return Promise.all((this.listeners.get(type) ?? []).map((listener) => listener(given)));
  }

  setAttribute(key, value) {
    this.attributes.set(key, value);
    if (key === "value") this.value = value;
  }

  getAttribute(key) {
    return this.attributes.get(key) ?? null;
  }

  /* All elements in it with a name. */
  all(name) {
    return this.children.flatMap((child) => (child instanceof FakeElement ? [...(child.name === name ? [child] : []), ...child.all(name)] : []));
  }

  append(...children) {
    this.children.push(...children);
    const texts = children.filter((child) => typeof child === "string");
    if (texts.length) this.textContent = texts.join("");
  }

  replaceChildren(...children) {
    this.children = children;
    if (this.name === "select") this.value = children[0]?.value ?? "";
  }

  get selectedOptions() {
    return this.children.filter((child) => child.value === this.value);
  }

  closest() {
    return null;
  }

  focus() {}
}

/** Put a page in place of the browser's.
 * @param {Record<string, string>} kinds the elements of parts that are not plain ones: part -> name
 * @returns {{ part: (name: string) => FakeElement, asked: { url: string, answer: (body: any, status?: number) => Promise<void>, fail: () => void }[] }} */
export function fakePage(kinds = {}) {
  const parts = new Map();
  const part = (name) => {
    if (!parts.has(name)) parts.set(name, new FakeElement(kinds[name] ?? "div"));
    return parts.get(name);
  };
  const asked = [];
  const page = new FakeElement("document");
  Object.assign(page, {
    hidden: false,
    documentElement: new FakeElement("html"),
    head: { append: (link) => link.happens("load") },
    body: new FakeElement("body"),
    createElement: (name) => new FakeElement(name),
    querySelector: (selector) => part(/data-part="([^"]+)"/.exec(selector)[1]),
  });
  globalThis.document = page;
  globalThis.window = new FakeElement("window");
  globalThis.setInterval = () => 0;
  globalThis.fetch = (url) =>
    new Promise((resolve, fail) => {
      const answer = async (body, status = 200) => {
        resolve({ ok: status < 400, status, json: async () => body, text: async () => body });
        await new Promise((done) => setImmediate(done)); // the page has taken the answer
      };
      asked.push({ url, answer, fail });
    });
  return { part, asked };
}
