/* Viewer: a drawing with its controls: which state is shown, what is open, what is selected. */

const SMALLEST = 0.7; // of the scale at which a drawing is made to fit its box at first
const LARGEST = 2.5;
const MOST_FITTED = 1.5; // a small drawing does not become larger than that to fit

class Viewer {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.mark = root.id; // for ids within the picture
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.graph = new Graph(data);
    this.lay(READING);
    this.open = new Set(data.open);
    this.state = data.start;
    this.selected = null;
    this.chosen = "stage"; // what the reader has the colours say
    this.zoom = 1;
    this.timeline = new Timeline(this);
    this.controls();
    this.arrange();
    const across = this.across();
    if (across >= SMALLEST) this.scale(Math.min(1, across));
    this.part("paper").style.height = `${Math.ceil(this.layout.height * this.zoom) + 20}px`;
    this.reserve();
    window.addEventListener("resize", () => this.reserve());
  }

  lay(sizes) {
    this.layout = new Layout(this.graph, getComputedStyle(this.root).fontFamily, sizes);
    this.routes = new Routes(this.layout);
  }

  /* What the colours say in this state. */
  get colour() {
    if (this.chosen !== "stage") return this.chosen;
    return this.data.stops.find((stop) => this.state <= stop.last).colour;
  }

  /* The scale at which the drawing is as wide as its paper. */
  across() {
    return (this.part("paper").clientWidth - 2) / this.layout.width;
  }

  fit() {
    const down = (this.part("paper").clientHeight - 2) / this.layout.height;
    this.scale(Math.min(MOST_FITTED, this.across(), down));
  }

  controls() {
    for (const radio of this.root.querySelectorAll("[data-colour]")) {
      radio.addEventListener("change", () => {
        this.chosen = radio.dataset.colour;
        this.draw();
      });
    }
    this.part("open-all").addEventListener("click", () => this.openAll());
    this.part("close-all").addEventListener("click", () => {
      this.open.clear();
      this.arrange();
    });
    this.part("larger").addEventListener("click", () => this.scale(this.zoom * 1.25));
    this.part("smaller").addEventListener("click", () => this.scale(this.zoom / 1.25));
    this.part("fit").addEventListener("click", () => this.fit());
    const names = this.part("names");
    this.data.nodes.forEach((node) => names.append(make("option", { value: node.name })));
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
    this.zoom = Math.max(0.02, Math.min(LARGEST, zoom));
    const svg = this.part("paper").firstElementChild;
    svg.setAttribute("width", this.layout.width * this.zoom);
    svg.setAttribute("height", this.layout.height * this.zoom);
  }

  openAll() {
    this.data.boxes.forEach((box, id) => box.rows.length && this.open.add(id));
    this.arrange();
    this.fit();
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

  /* Open or close a scope, or show the history of a node. */
  activate(element) {
    if (!element) return;
    const id = Number(element.dataset.box);
    const box = this.data.boxes[id];
    this.current = id;
    if (!box.rows.length) {
      this.select(box.node, false);
      return;
    }
    const before = this.layout.rects.get(id);
    if (this.open.has(id)) this.open.delete(id);
    else this.open.add(id);
    this.arrange();
    const after = this.layout.rects.get(id);
    this.part("paper").scrollBy((after.x - before.x) * this.zoom, (after.y - before.y) * this.zoom);
    this.focus(id);
  }

  /* Show the history of a node; `reveal` opens what it is in and scrolls to it. */
  select(node, reveal) {
    this.selected = node;
    const id = this.graph.boxOf.get(node);
    if (reveal) {
      this.graph.ways[id].slice(0, -1).forEach((around) => this.open.add(around));
      this.current = id;
      this.arrange();
      this.scrollTo(id);
    } else this.draw();
    showHistory(this);
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
    for (const edge of this.drawn) {
      if (edge.a !== id && edge.b !== id) continue;
      const other = edge.a === id ? edge.b : edge.a;
      const [ox, oy] = centre(this.layout.rects.get(other));
      const along = (ox - x) * dx + (oy - y) * dy;
      const aside = Math.abs((ox - x) * dy) + Math.abs((oy - y) * dx);
      if (along > 0 && (best === null || along + 2 * aside < best.far)) best = { far: along + 2 * aside, other };
    }
    return best && best.other;
  }

  /* Edges between what is visible: nodes, and closed scopes for what is in them. */
  edges() {
    return this.graph.edges(this.state, (node) => this.visible.get(node));
  }

  arrange() {
    this.layout.run(this.open);
    this.visible = visibleBoxes(this.graph, this.layout);
    this.draw();
  }

  draw() {
    const paper = this.part("paper");
    const scroll = [paper.scrollLeft, paper.scrollTop];
    this.drawn = this.edges();
    const picture = drawPicture(this);
    paper.replaceChildren(picture);
    [paper.scrollLeft, paper.scrollTop] = scroll;
    this.timeline.show();
    this.part("legend").replaceChildren(...legend(this.graph, this.colour, picture));
    const notes = standInNotes(this.graph, this.drawn);
    this.part("notes").replaceChildren(...notes.map((note) => make("li", {}, make("span", { class: "swatch merged" }), note)));
  }

  /* Room that stays the same from state to state. */
  reserve() {
    this.timeline.reserve();
  }
}
