/* Viewer: draws a graph in each of its states, and shows the history of any node in it. */

const SMALLEST = 0.7; // of the scale at which a drawing is made to fit its box at first
const HEATS = 7; // steps of the scale of times
const FATES = ["executed", "fused", "merged", "folded", "removed", "unreached", "compiled", "runtime"];
const KINDS = ["forward", "gradient", "update", "runtime"];
const KIND_WORDS = ["forward", "gradient", "update", "made by the runtime"];

class Viewer {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    const style = getComputedStyle(root);
    this.fonts = {
      name: `500 12.5px ${style.fontFamily}`,
      type: `10.5px ${style.fontFamily}`,
    };
    this.layout = new Layout(data, this.fonts);
    this.inside = data.boxes.map(() => []);
    data.boxes.forEach((box, id) => {
      if (box.node !== null) for (const around of this.layout.ancestors(id)) this.inside[around].push(box.node);
    });
    this.open = new Set(data.open);
    this.state = data.start;
    this.selected = null;
    this.colour = "kind";
    this.zoom = 1;
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.controls();
    this.arrange();
    if (this.fitting() >= SMALLEST) this.scale(this.fitting());
    this.part("paper").style.height = `${Math.ceil(this.layout.height * this.zoom) + 20}px`;
  }

  /* The version of a node that stands in this state; none where it is not in the graph. */
  version(node) {
    return this.data.nodes[node].versions.find(
      (version) => version[FIRST] <= this.state && this.state <= version[LAST],
    );
  }

  /* Whether a node was in the graph in this state or before. */
  seen(node) {
    return this.data.nodes[node].versions[0][FIRST] <= this.state;
  }

  fitting() {
    return Math.min(1, (this.part("paper").clientWidth - 2) / this.layout.width);
  }

  controls() {
    const { data } = this;
    const slider = this.part("slider");
    slider.max = data.states.length - 1;
    slider.addEventListener("input", () => this.go(Number(slider.value)));
    this.part("before").addEventListener("click", () => this.go(this.state - 1));
    this.part("after").addEventListener("click", () => this.go(this.state + 1));
    for (const button of this.root.querySelectorAll("[data-stage]")) {
      const first = data.states.findIndex((state) => state.stage === button.dataset.stage);
      button.addEventListener("click", () => this.go(first));
    }
    for (const radio of this.root.querySelectorAll("[data-colour]")) {
      radio.addEventListener("change", () => {
        this.colour = radio.dataset.colour;
        this.draw();
      });
    }
    this.part("open-all").addEventListener("click", () => {
      data.boxes.forEach((box, id) => box.rows.length && this.open.add(id));
      this.arrange();
    });
    this.part("close-all").addEventListener("click", () => {
      this.open.clear();
      this.arrange();
    });
    this.part("larger").addEventListener("click", () => this.scale(this.zoom * 1.25));
    this.part("smaller").addEventListener("click", () => this.scale(this.zoom / 1.25));
    this.part("fit").addEventListener("click", () => this.scale(this.fitting()));
    const names = this.part("names");
    data.nodes.forEach((node) => names.append(make("option", { value: node.name })));
    const search = this.part("search");
    search.addEventListener("change", () => this.find(search.value));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.find(search.value);
      }
    });
    const paper = this.part("paper");
    paper.addEventListener("click", (event) => this.activate(event.target.closest("[data-box]")));
    paper.addEventListener("keydown", (event) => this.key(event));
    paper.addEventListener("focusin", (event) => {
      const box = event.target.closest("[data-box]");
      if (box) this.current = Number(box.dataset.box);
    });
  }

  go(state) {
    this.state = Math.max(0, Math.min(this.data.states.length - 1, state));
    this.draw();
  }

  scale(zoom) {
    this.zoom = Math.max(0.2, Math.min(2.5, zoom));
    const svg = this.part("paper").firstElementChild;
    svg.setAttribute("width", this.layout.width * this.zoom);
    svg.setAttribute("height", this.layout.height * this.zoom);
  }

  find(text) {
    const query = text.trim();
    if (!query) return;
    const names = this.data.nodes.map((node) => node.name);
    let node = names.indexOf(query);
    if (node < 0) node = names.findIndex((name) => name.toLowerCase().includes(query.toLowerCase()));
    this.part("search-result").textContent = node < 0 ? "No node has this in its name." : "";
    if (node >= 0) this.select(node, true);
  }

  activate(element) {
    if (!element) return;
    const id = Number(element.dataset.box);
    const box = this.data.boxes[id];
    this.current = id;
    if (box.rows.length) {
      const before = this.layout.rects.get(id);
      if (this.open.has(id)) this.open.delete(id);
      else this.open.add(id);
      this.arrange();
      const after = this.layout.rects.get(id);
      this.part("paper").scrollBy((after.x - before.x) * this.zoom, (after.y - before.y) * this.zoom);
      this.focus(id);
    } else this.select(box.node, false);
  }

  /* Show the history of a node; `reveal` opens what it is in and scrolls to it. */
  select(node, reveal) {
    this.selected = node;
    const id = this.layout.boxOf.get(node);
    if (reveal) {
      this.layout.ancestors(id).slice(0, -1).forEach((around) => this.open.add(around));
      this.current = id;
      this.arrange();
      this.scrollTo(id);
    } else this.draw();
    this.showHistory();
    this.focus(id);
  }

  scrollTo(id) {
    const paper = this.part("paper");
    const rect = this.layout.rects.get(id);
    paper.scrollTo({
      left: (rect.x + rect.width / 2) * this.zoom - paper.clientWidth / 2,
      top: (rect.y + rect.height / 2) * this.zoom - paper.clientHeight / 2,
    });
  }

  focus(id) {
    const element = this.part("paper").querySelector(`[data-box="${id}"]`);
    if (element) element.focus({ preventScroll: true });
  }

  key(event) {
    const element = event.target.closest("[data-box]");
    if (!element) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.activate(element);
      return;
    }
    const way = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    if (!way) return;
    event.preventDefault();
    const next = this.neighbour(Number(element.dataset.box), way);
    if (next === null) return;
    this.current = next;
    this.draw();
    this.focus(next);
    this.part("paper").querySelector(`[data-box="${next}"]`).scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /* The box at the other end of an edge that lies most in a direction. */
  neighbour(id, [dx, dy]) {
    const centre = (rect) => [rect.x + rect.width / 2, rect.y + rect.height / 2];
    const [x, y] = centre(this.layout.rects.get(id));
    let best = null;
    for (const edge of this.edges()) {
      if (edge.a !== id && edge.b !== id) continue;
      const other = edge.a === id ? edge.b : edge.a;
      const [ox, oy] = centre(this.layout.rects.get(other));
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      if (along > 0 && (best === null || along + 2 * aside < best.far)) best = { far: along + 2 * aside, other };
    }
    return best && best.other;
  }

  arrange() {
    this.layout.run(this.open);
    this.draw();
  }

  /* The visible box that stands for a node: itself, or the outermost closed scope around it. */
  visible(node) {
    const way = this.layout.ancestors(this.layout.boxOf.get(node));
    return way.find((id) => !this.layout.isOpen(id));
  }

  /* Edges between visible boxes, those of closed scopes bundled. */
  edges() {
    const bundles = new Map();
    const add = (source, target, control) => {
      if (!this.version(source)) return;
      const [a, b] = [this.visible(source), this.visible(target)];
      if (a === b) return;
      const key = `${a}>${b}`;
      const edge = bundles.get(key) || { a, b, data: 0, control: 0, ends: [] };
      edge[control ? "control" : "data"]++;
      edge.ends.push(source, target);
      bundles.set(key, edge);
    };
    for (const node of this.data.nodes.keys()) {
      const version = this.version(node);
      if (!version) continue;
      version[INPUTS].forEach((source) => add(source, node, false));
      version[CONTROLS].forEach((source) => add(source, node, true));
    }
    return [...bundles.values()];
  }

  draw() {
    const { layout, data } = this;
    const state = data.states[this.state];
    const frames = make("g", {});
    const lines = make("g", { class: "edges" });
    const boxes = make("g", {});
    const related = this.selected === null ? [] : data.nodes[this.selected].related;
    this.touched = new Set(state.touched);
    this.leaving = new Set(state.gone);
    const svg = make(
      "svg",
      {
        viewBox: `0 0 ${round(layout.width)} ${round(layout.height)}`,
        width: layout.width * this.zoom,
        height: layout.height * this.zoom,
        role: "group",
        "aria-label": `${data.title}: ${state.title}, ${state.count} nodes`,
        class: `colour-${this.colour}`,
      },
      this.markers(),
      this.headings(),
      frames,
      lines,
      boxes,
    );
    for (const edge of this.edges()) lines.append(this.edge(edge));
    let first = null;
    const walk = (id) => {
      const box = data.boxes[id];
      const inner = layout.isOpen(id);
      if (layout.rects.has(id) && box.framed) {
        const here = this.inside[id].filter((node) => this.version(node));
        if (this.inside[id].some((node) => this.seen(node))) {
          if (inner) frames.append(this.frame(id, here));
          boxes.append(inner ? this.head(id) : this.box(id, here, related));
          if (first === null || id === this.current) first = id;
        } else if (inner) return;
      }
      if (inner) box.rows.flat().forEach((entry) => typeof entry === "number" && walk(entry));
    };
    data.tracks.forEach(walk);
    const paper = this.part("paper");
    const scroll = [paper.scrollLeft, paper.scrollTop];
    paper.replaceChildren(svg);
    [paper.scrollLeft, paper.scrollTop] = scroll;
    const stop = svg.querySelector(`[data-box="${first}"]`);
    if (stop) stop.setAttribute("tabindex", "0");
    this.caption(state);
    this.legend();
  }

  markers() {
    const arrow = (id) =>
      make(
        "marker",
        { id: `${this.root.id}-${id}`, class: id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
        make("path", { d: "M0.5 0.8L7.5 4L0.5 7.2z" }),
      );
    return make("defs", {}, arrow("arrow"), arrow("arrow-lit"));
  }

  headings() {
    const words = ["Forward ↓", "Backward ↑", "Updates"];
    const group = make("g", { class: "headings" });
    this.layout.tracks.forEach((track, index) => {
      const nodes = this.inside[this.data.tracks[index]];
      if (!nodes.length) return;
      const x = track.x + track.width / 2;
      group.append(make("text", { x, y: MARGIN + 8 }, words[index]));
      const later = Math.min(...nodes.map((node) => this.data.nodes[node].versions[0][FIRST]));
      if (later <= this.state) return;
      const stages = [...new Set(this.data.states.map((state) => state.stage))];
      const step = 1 + stages.indexOf(this.data.states[later].stage);
      group.append(make("text", { x, y: MARGIN + 30, class: "later" }, `comes in step ${step}`));
    });
    return group;
  }

  edge(edge) {
    const lit = this.selected !== null && edge.ends.includes(this.selected);
    const count = edge.data + edge.control;
    const d = this.layout.path(edge.a, edge.b);
    const beside = this.layout.trackOf(edge.a) === this.layout.trackOf(edge.b) && d.includes("Q");
    const kind = edge.data ? "data" : "control";
    const words = [
      edge.data && `${edge.data} tensor${edge.data > 1 ? "s" : ""}`,
      edge.control && `${edge.control} control dependenc${edge.control > 1 ? "ies" : "y"}`,
    ].filter(Boolean);
    const group = make(
      "g",
      { class: `edge ${kind}${lit ? " lit" : ""}` },
      make("title", {}, words.join(", ")),
      make("path", { d, class: "touch" }),
      make("path", {
        d,
        class: "line",
        "stroke-width": round(1 + Math.min(1.8, Math.log2(count) / 3)),
        "marker-end": `url(#${this.root.id}-arrow${lit ? "-lit" : ""})`,
      }),
    );
    if (edge.data && count > 1 && !beside) {
      const line = group.lastElementChild;
      const middle = line.getPointAtLength(line.getTotalLength() / 2);
      group.append(make("text", { x: middle.x, y: middle.y + 3.5, class: "count" }, String(count)));
    }
    return group;
  }

  frame(id, here) {
    const rect = this.layout.rects.get(id);
    return make("rect", {
      class: `frame ${this.kindOf(id)}${here.length ? "" : " gone"}`,
      ...rounded(rect),
      rx: 8,
    });
  }

  head(id) {
    const rect = this.layout.rects.get(id);
    const label = shortened(this.data.boxes[id].label);
    return make(
      "g",
      { class: "box head", "data-box": id, role: "button", tabindex: -1, "aria-expanded": "true", "aria-label": `scope ${this.data.boxes[id].label}, open` },
      make("title", {}, this.data.boxes[id].label),
      make("rect", { x: rect.x + 4, y: rect.y + 3, width: textWidth(label, this.fonts.name) + 30, height: HEAD - 6, rx: 5 }),
      make("text", { x: rect.x + 11, y: rect.y + 17, class: "sign" }, "−"),
      make("text", { x: rect.x + 24, y: rect.y + 17, class: "name" }, label),
    );
  }

  /* A node, or a closed scope, as it is in this state. */
  box(id, here, related) {
    const box = this.data.boxes[id];
    const rect = this.layout.rects.get(id);
    const scope = box.rows.length > 0;
    const all = this.inside[id];
    const known = all.filter((node) => this.seen(node));
    const leaving = all.filter((node) => this.leaving.has(node)).length;
    const changed = all.filter((node) => this.touched.has(node) && this.version(node)).length;
    const below = scope
      ? here.length === known.length ? `${here.length} nodes` : `${here.length} of ${known.length} nodes`
      : here.length ? this.version(box.node)[OP] : "";
    const classes = ["box", scope ? "scope" : "node", this.kindOf(id), this.colourOf(id, here)];
    if (!here.length) classes.push("gone");
    if (leaving) classes.push("leaving");
    if (changed && this.state) classes.push("changed");
    if (all.includes(this.selected)) classes.push("selected");
    if (all.some((node) => related.includes(node))) classes.push("related");
    const twoLines = rect.height > 30;
    const middle = rect.x + rect.width / 2;
    const name = shortened(box.label);
    const ns = this.colour === "time" && here.length ? this.spent(id) : 0;
    const shown = ns ? time(ns) : below !== box.label ? below : "";
    const said = scope
      ? `scope ${box.label}, ${below}, closed`
      : `${this.data.nodes[box.node].name}, ${here.length ? below : "gone"}`;
    const group = make(
      "g",
      {
        class: classes.filter(Boolean).join(" "),
        "data-box": id,
        "data-count": here.length,
        role: "button",
        tabindex: -1,
        "aria-label": said,
        "aria-expanded": scope ? "false" : null,
        "aria-pressed": scope ? null : String(box.node === this.selected),
      },
      make("title", {}, scope ? said : this.data.nodes[box.node].name),
      scope && here.length ? make("rect", { class: "behind", ...rounded({ ...rect, x: rect.x + 3, y: rect.y + 3 }), rx: 6 }) : null,
      make("rect", { ...rounded(rect), rx: scope ? 6 : 5 }),
      make("text", { x: middle, y: rect.y + (twoLines && shown ? 16 : rect.height / 2 + 4.5), class: "name" }, scope ? `+ ${name}` : name),
      shown && twoLines ? make("text", { x: middle, y: rect.y + 30, class: "type" }, shown) : null,
    );
    if (scope && (leaving || changed)) {
      const signs = [leaving ? `−${leaving}` : "", changed ? `~${changed}` : ""].filter(Boolean).join(" ");
      group.append(make("text", { x: rect.x + rect.width - 4, y: rect.y - 3, class: "badge" }, signs));
    }
    return group;
  }

  kindOf(id) {
    const kinds = new Set(this.inside[id].map((node) => this.data.nodes[node].kind));
    kinds.delete(3);
    return `kind-${KINDS[kinds.size ? Math.min(...kinds) : 3]}`;
  }

  colourOf(id, here) {
    const { nodes } = this.data;
    if (this.colour === "time") {
      const ns = this.spent(id);
      return ns ? `heat-${this.heat(ns)}` : "heat-none";
    }
    if (this.colour === "device") {
      const devices = new Set(here.map((node) => this.version(node)[DEVICE]).filter(Boolean));
      if (!devices.size) return "device-none";
      return devices.size > 1 ? "device-many" : `device-${this.data.devices.indexOf([...devices][0]) % 6}`;
    }
    if (this.colour === "fate") {
      const fates = new Set(this.inside[id].map((node) => nodes[node].fate));
      return fates.size > 1 ? "fate-many" : `fate-${[...fates][0]}`;
    }
    return "";
  }

  /* What the nodes in a box took in the measured step. */
  spent(id) {
    return this.inside[id].reduce((sum, node) => sum + (this.data.nodes[node].ns || 0), 0);
  }

  heat(ns) {
    const largest = Math.max(...this.data.nodes.map((node) => node.ns || 0));
    return Math.min(HEATS - 1, Math.floor(Math.sqrt(ns / largest) * HEATS));
  }

  caption(state) {
    const slider = this.part("slider");
    const before = this.state ? this.data.states[this.state - 1].count : 0;
    const count = this.state && before !== state.count ? `${before} → ${state.count} nodes` : `${state.count} nodes`;
    slider.value = this.state;
    slider.setAttribute("aria-valuetext", `${state.title}, ${count}`);
    this.part("before").disabled = this.state === 0;
    this.part("after").disabled = this.state === this.data.states.length - 1;
    for (const button of this.root.querySelectorAll("[data-stage]")) {
      if (button.dataset.stage === state.stage) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
    this.part("title").textContent = state.title;
    this.part("count").textContent = count;
    this.part("about").textContent = state.about;
    this.part("lines").replaceChildren(...state.lines.map((line) => make("li", {}, line)));
  }

  legend() {
    const entry = (classes, text) => make("li", {}, make("span", { class: `swatch ${classes}` }), text);
    const { data } = this;
    let entries = [];
    if (this.colour === "kind") entries = KINDS.map((kind, i) => entry(`kind-${kind}`, KIND_WORDS[i]));
    if (this.colour === "device") {
      entries = data.devices.map((device, i) => entry(`device-${i % 6}`, device));
      entries.push(entry("device-none", "not assigned yet"));
    }
    if (this.colour === "fate") {
      const known = new Set(data.nodes.map((node) => node.fate));
      entries = FATES.filter((fate) => known.has(fate)).map((fate) => entry(`fate-${fate}`, fate));
      entries.push(entry("fate-many", "several"));
    }
    if (this.colour === "time") {
      const largest = Math.max(...data.nodes.map((node) => node.ns || 0));
      entries = Array.from({ length: HEATS }, (_, i) =>
        entry(`heat-${i}`, i ? `from ${time((i / HEATS) ** 2 * largest)}` : "less"),
      );
      entries.push(entry("heat-none", "did not run"));
    }
    entries.push(entry("gone", "gone"), entry("changed", "changed by this pass"));
    this.part("legend").replaceChildren(...entries);
  }

  /* The history of the selected node. */
  showHistory() {
    const node = this.data.nodes[this.selected];
    const panel = this.part("panel");
    const parts = [
      make("h4", {}, node.name),
      make("p", { class: "op" }, node.op),
      ...node.history.flatMap((section) => this.section(section)),
    ];
    if (node.times.rows.length) parts.push(...this.times(node.times));
    panel.replaceChildren(...parts);
    panel.scrollTop = 0;
  }

  section(section) {
    const heading = make("h5", {});
    if (section.state === null) heading.append(section.title);
    else heading.append(this.link(section.title, "state", () => this.go(section.state)));
    if (section.about) heading.append(" ", make("span", {}, section.about));
    const items = section.lines.map((line) => make("li", {}, ...line.map((part) => this.phrase(part))));
    return [heading, make("ul", {}, ...items)];
  }

  phrase(part) {
    if (typeof part === "string") return part;
    if (part.code !== undefined) return make("code", {}, part.code);
    if (part.node !== undefined) {
      return this.link(part.text, "link", () => this.select(part.node, true));
    }
    return this.link(part.text, "state", () => this.go(part.state));
  }

  link(text, kind, action) {
    const link = make("a", { href: `#${this.root.id}`, class: kind });
    for (const piece of text.split(/(?<=[/_])/)) link.append(piece, make("wbr"));
    link.addEventListener("click", (event) => {
      event.preventDefault();
      action();
    });
    return link;
  }

  /* A column for each batch size. */
  times(times) {
    const row = (cells, tag) => make("tr", {}, make("th", {}, cells[0]), ...cells.slice(1).map((cell) => make(tag, {}, cell)));
    const table = make("table", {}, make("thead", {}, row(times.rows[0], "th")), make("tbody", {}, ...times.rows.slice(1).map((cells) => row(cells, "td"))));
    return [make("h5", {}, times.title), make("div", { class: "scroll" }, table)];
  }

  /* Paper has no controls: it gets a drawing of each stage, with its scopes closed. */
  print() {
    const { open, state, selected, colour } = this;
    const states = this.data.states.map((state) => state.stage);
    this.open = new Set();
    this.selected = null;
    const figures = [...new Set(states)].map((stage) => {
      this.state = states.lastIndexOf(stage);
      this.colour = stage === "execution" ? "time" : "kind";
      this.arrange();
      const svg = this.part("paper").firstElementChild;
      svg.removeAttribute("width");
      svg.removeAttribute("height");
      const button = this.root.querySelector(`[data-stage="${stage}"]`);
      const words = `${button.textContent.trim()}: ${this.data.states[this.state].count} nodes`;
      return make("figure", {}, make("figcaption", {}, words), svg);
    });
    this.part("prints").replaceChildren(...figures);
    Object.assign(this, { open, state, selected, colour });
    this.arrange();
  }
}

for (const root of document.querySelectorAll(".viewer")) {
  const viewer = new Viewer(root, JSON.parse(document.getElementById(root.dataset.source).textContent));
  window.addEventListener("beforeprint", () => viewer.print());
}
