"""Gone: options that earlier versions had, and what takes their place: for one release."""

CONFINED = "the graph runs confined; --trust runs it unconfined"
SAVED = (
    "a saved comparison is its JSON; compare A.json B.json --fail-if-slower 5 shows the verdicts"
)
TASKS = "lifecycle --cluster and compare --cluster run a graph over tasks"
FORMATS = "write JSON, CSV, a Chrome trace or a profile for TensorBoard instead"

# An option, or a value of one: what to use instead
GONE = {
    "--allow-read": CONFINED,
    "--allow-write": CONFINED,
    "--allow-network": CONFINED,
    "--allow-side-effects": CONFINED,
    "--import-seconds": "the confined process has a fixed limit of time",
    "--even-if-busy": "a verdict is always shown with its interval and its control",
    "--expand": "--full shows every scope and function",
    "--split": "a step over tasks is split by layers",
    "--soft-placement": "a graph from a file is placed on the devices that are here",
    "--soft": "a graph from a file is placed on the devices that are here",
    "--trace-every": "every other step is traced",
    "--threshold": "a layer is red if it takes more than 5 % of the time of all ops",
    "--fail-if-undecided": "the exit status of --fail-if-slower is 3 if nothing is decided",
    "--other-graph": "files are compared row by row, whatever their graphs",
    "--values-at": "--values takes the number of the run",
    "--no-v1": "TensorFlow 1 is emulated only with --v1",
    "--stacks": "--lines and --html show where the time went",
    "--op-runs": "--lines, --html and --format json show where the time went",
    "--with": SAVED,
    "--force": "--out names a new folder",
    "--answers": "the page shows each answer after its question",
    "--seconds": "the page ends a program whose stage takes longer than 20 s",
    "--batch-size": "lifecycle --batch-size takes the rows of a step",
    "--batch-sizes": "compare --batch-sizes measures a step at several batch sizes",
    "--devices": "lifecycle --devices places a step on several devices",
    "--xla": "lifecycle --xla shows the generated code",
    "--configs": "compare --configs measures configurations",
    "--one-thread": "compare --configs one-thread compares it with the default",
    "--seed": "every training uses seed 1",
    "--experiments": "lifecycle --experiments measures what a second run of an op adds to a step",
    "--without": "lifecycle --without shows what a pass does; compare --configs passes measures it",
    "parquet": FORMATS,
    "columns": FORMATS,
    "model-explorer": FORMATS,
    "methods": "each chapter says how its numbers were obtained",
    "roofline": "the column GFLOP/s of the op table",
    "elsewhere": SAVED,
    "tasks": TASKS,
}


def sentence(word: str) -> str | None:
    """Return what takes the place of an option or value that is gone; None if it never was one."""
    name = word.partition("=")[0]
    return f"{name}: gone; {GONE[name]}." if name in GONE else None
