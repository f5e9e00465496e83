/* Data: what viewer_data.py and questions.py send with a page. A number stands for a node, a box or
 * a state: its place in `nodes`, `boxes` or `states`. */

export interface GraphData {
  title: string;
  nodes: Node[];
  boxes: Box[];
  tracks: number[]; // boxes
  headings: string[]; // of the tracks
  open: number[]; // boxes
  states: State[];
  start: number; // a state
  made: number; // the last state before the runtime touches the graph
  stops: Stop[];
  transfers: Transfer[];
  legend: {
    kind: [name: string, words: string][];
    fate: string[];
    device: string[];
    time: string[]; // of each step of the scale
  };
  lines: number[][]; // of each node, those of the program whose work it does
  program: [line: number, code: string][]; // what made nodes, in that file
  file: string; // of these lines; empty where the program is shown beside the drawing
}

/* What a box shows of the recorded step. */
export interface Values {
  data?: string;
  grad?: string;
  missing?: string;
}

export interface Node extends Values {
  name: string;
  op: string;
  related: number[];
  versions: Version[];
  history: Section[];
  times: { title: string; rows: string[][] };
  meaning?: string;
  bookkeeping?: boolean;
  code?: boolean; // whether XLA generated code for it
}

export type Version = [
  first: number,
  last: number,
  op: string,
  device: string,
  inputs: number[],
  controls: number[],
  shapes: string[], // of the inputs, such as 16 or ?x28x28x6; empty of a scalar, or where it is not known
  outputs: string[], // of their makers, the slots that the inputs come from; empty of the first
];

export interface Section {
  title: string;
  about: string;
  state: number | null;
  lines: Phrase[][];
}

export type Phrase =
  | string
  | { code: string }
  | { text: string; node: number }
  | { text: string; state: number };

export interface Box extends Values {
  label: string;
  parent: number | null;
  node: number | null; // none of a scope
  framed: boolean;
  rows: (number | Lane)[][];
  kind: string;
  fates: [name: string, nodes: number][];
  time: string | null;
  heat: number | null; // a step of the scale of times
}

export type Lane = [source: number, target: number];

export interface State {
  stage: string;
  title: string;
  about: string;
  lines: string[];
  gone: number[];
  touched: number[];
  cut: [source: number, target: number][]; // edges by which the gradient of a variable does not come back
  count: number;
  flowed: boolean;
}

export interface Stop {
  title: string;
  colour: string;
  first: number;
  last: number;
  ticks: Tick[];
}

export interface Tick {
  state: number;
  title: string;
  change: string; // in the number of nodes
}

export interface Transfer {
  send: number;
  recv: number;
  bytes: string;
  title: string;
}

export interface Question {
  text: string;
  unit: string;
  options: string[];
  answer: string;
  reason: string;
}

/* What drawPicture takes: a graph in one of its states. */
export interface View {
  graph: import("./graph.js").Graph;
  layout: import("./layout.js").Layout;
  routes: import("./routes.js").Routes;
  drawn: Edge[];
  state: number;
  colour: string;
  zoom: number;
  mark: string;
  beside?: boolean; // whether the page has the program beside the drawing
  selected: number | null; // a node
  current: number | null; // a box
  marks?: Map<number, string>; // node -> `new` or `changed` since the last edit
  asking?: boolean;
}

/* What leads from one visible box to another. */
export interface Edge {
  a: number;
  b: number;
  tensors: Map<string, string>; // their shapes, each tensor once, however many nodes take it
  control: number;
  ends: number[]; // nodes
  cut: boolean; // whether a gradient stops at it
  transfers: Transfer[];
}
