"""What is written for Model Explorer: every field of graphs and node data, from records by hand."""

import json

from tflab.exporters import model_explorer
from tflab.records.graph import Node, Source, Tensor
from tflab.records.placed import Fate, Kernel, Origin, Transfer
from tflab.records.stages import Frontend, Placement
from tflab.records.timed import OpRun

LINE = Source("models/mine.py", 7, "build", "y = tf.square(x)")
X = Node("x", "Placeholder", outputs=(Tensor("float32", (None, 2)),))
SQUARE = Node(
    "layer/square",
    "Square",
    ("x:1",),
    control_inputs=("x", "gone"),
    outputs=(Tensor("float32", (None, 2)),),
    source=LINE,
)
RAN = Node("layer/square", "_Square", ("_arg_x",), device="CPU:0")
FED = Node("_arg_x", "_Arg", device="CPU:0")
STAGES = (
    Frontend(program=None, nodes=(X, SQUARE)),
    Placement(
        program=None,
        nodes=(FED, RAN),
        ledger=(
            Fate("x", "removed", "feeds_and_fetches", "_arg_x"),
            Fate("layer/square", "executed", None, None),
        ),
        origins=(Origin("_arg_x", "feed"),),
        kernels=(Kernel("layer/square", "_Square", "CPU:0", "T=float32", 1, "CPU", None),),
    ),
)
RUNS = (
    OpRun(1, "a", "Add", "CPU:0", 0, 3_000, 100),
    OpRun(1, "a", "Add", "CPU:0", 9, 1_000, 100),
    OpRun(1, "b", "Add", "CPU:0", 9, 1_500),
    OpRun(2, "a", "Add", "CPU:0", 20, 2_000, 400),
    OpRun(2, "b", "Add", "CPU:0", 20, 500),
)


def pairs(**attributes):
    return [{"key": key.replace("_", " "), "value": value} for key, value in attributes.items()]


def edge(source, output, place):
    return {
        "sourceNodeId": source,
        "sourceNodeOutputId": output,
        "targetNodeInputId": place,
    }


def output(text):
    return [{"id": "0", "attrs": pairs(tensor=text)}]


def node(name, label, namespace, attrs, edges=(), outputs=()):
    return {
        "id": name,
        "label": label,
        "namespace": namespace,
        "subgraphIds": [],
        "attrs": attrs,
        "incomingEdges": list(edges),
        "inputsMetadata": [],
        "outputsMetadata": list(outputs),
    }


def test_each_stage_is_a_graph_whose_nodes_know_their_line_fate_pass_and_device():
    known = {"line": "mine.py:7", "code": "y = tf.square(x)", "fate": "executed"}
    kernel = {"runs_on": "CPU:0", "kernel": "CPU"}
    float32 = output("float32 [?, 2]")
    taken = {"fate": "removed", "pass": "feeds_and_fetches", "into": "_arg_x"}
    assert model_explorer.collection("mine", STAGES) == {
        "label": "mine",
        "graphs": [
            {
                "id": "1 frontend",
                "nodes": [
                    node("x", "x", "", pairs(op="Placeholder", **taken), outputs=float32),
                    node(
                        "layer/square",
                        "square",
                        "layer",
                        pairs(op="Square", **known, **kernel),
                        [edge("x", "1", "0"), edge("x", "control", "1")],
                        float32,
                    ),
                ],
            },
            {
                "id": "2 placement",
                "nodes": [
                    node("_arg_x", "_arg_x", "", pairs(op="_Arg", device="CPU:0", made_by="feed")),
                    node(
                        "layer/square",
                        "square",
                        "layer",
                        pairs(op="_Square", device="CPU:0", **known, **kernel),
                        [edge("_arg_x", "0", "0")],
                    ),
                ],
            },
        ],
        "graphSorting": "name_asc",
    }


def test_node_data_are_means_over_the_steps_that_were_traced():
    assert model_explorer.node_data(RUNS) == {
        "time": ("time in us", {"a": 3.0, "b": 1.0}),
        "share": ("share of all ops in %", {"a": 75.0, "b": 25.0}),
        "memory": ("memory requested in bytes", {"a": 300.0, "b": 0.0}),
    }


def test_tensors_on_the_wire_are_no_ops_and_have_means_over_what_was_recorded():
    wire = "wire from task 0 to task 1"
    runs = (
        OpRun(1, "x_S1", "RecvTensor", wire, 0, 8_000),
        OpRun(1, "y_S1", "RecvTensor", wire, 0, 3_000),
        OpRun(2, "b", "Add", "CPU:0", 0, 1_000),
        OpRun(2, "y_S1", "RecvTensor", wire, 0, 4_000),
        OpRun(2, "y_S1", "RecvTensor", wire, 0, 5_000),
    )
    assert model_explorer.node_data(runs) == {
        "time": ("time in us", {"b": 0.5}),
        "share": ("share of all ops in %", {"b": 100.0}),
        "wire": ("time on the wire in us", {"x_S1": 8.0, "y_S1": 4.0}),
    }


def test_the_nodes_of_two_tasks_have_colours_of_their_own_and_an_edge_over_the_wire(tmp_path):
    tasks = [f"/job:worker/replica:0/task:{number}/device:CPU:0" for number in (0, 1)]
    nodes = (
        Node("send", "_Send", device=tasks[0]),
        Node("recv", "_Recv", device=tasks[1]),
        Node("noted", "NoOp"),
    )
    sent = Transfer("x", "send", "recv", *tasks, "float32", None, None)
    stages = (Placement(program=None, nodes=nodes, transfers=(sent,)),)
    (graph,) = model_explorer.collection("mine", stages)["graphs"]
    assert graph["nodes"] == [
        node("send", "send", "", pairs(op="_Send", device="task 0 CPU:0")),
        node(
            "recv", "recv", "", pairs(op="_Recv", device="task 1 CPU:0"), [edge("send", "0", "0")]
        ),
        node("noted", "noted", "", pairs(op="NoOp")),
    ]
    model_explorer.write(tmp_path / "explorer", "mine", stages, {})
    assert json.loads((tmp_path / "explorer/devices.json").read_text()) == {
        "1 placement": {
            "name": "device",
            "results": {
                "send": {"value": "task 0 CPU:0", "bgColor": "#f0a8a8"},
                "recv": {"value": "task 1 CPU:0", "bgColor": "#a8f0f0"},
            },
            "showExpandedSummaryOnGroupNode": True,
        }
    }


def test_of_many_devices_no_two_have_one_colour():
    devices = {f"n{number}": f"task {number} CPU:0" for number in range(64)}
    results = model_explorer.by_device(devices)["results"].values()
    assert len({result["bgColor"] for result in results}) == 64


def test_node_data_colour_the_graphs_that_ran(tmp_path):
    folder = tmp_path / "logs" / "explorer"
    model_explorer.write(folder, "mine", STAGES, {16: RUNS})
    assert sorted(path.name for path in folder.iterdir()) == [
        *("graphs.json", "memory-batch-16.json", "share-batch-16.json", "time-batch-16.json")
    ]
    # One collection, not a list of them: that is the form the viewer takes from a file.
    assert json.loads((folder / "graphs.json").read_text()) == model_explorer.collection(
        "mine", STAGES
    )
    assert json.loads((folder / "time-batch-16.json").read_text()) == {
        "2 placement": {
            "name": "time in us, batch 16",
            "results": {"a": {"value": 3.0}, "b": {"value": 1.0}},
            "gradient": [
                {"stop": 0.0, "bgColor": "#fff7ec"},
                {"stop": 0.5, "bgColor": "#fdbb84"},
                {"stop": 1.0, "bgColor": "#d7301f"},
            ],
        }
    }


def test_the_line_that_opens_it_has_the_graphs_the_devices_and_the_times(tmp_path):
    folder = tmp_path / "explorer"
    model_explorer.write(folder, "mine", STAGES, {16: RUNS, 1: RUNS})
    assert model_explorer.opening_line(folder) == (
        f"model-explorer {folder}/graphs.json "
        f"--node_data_paths {folder}/time-batch-1.json,{folder}/time-batch-16.json"
    )
    assert model_explorer.opening_line(tmp_path) == f"model-explorer {tmp_path}/graphs.json"
    (folder / "devices.json").touch()
    assert model_explorer.opening_line(folder) == (
        f"model-explorer {folder}/graphs.json --node_data_paths "
        f"{folder}/devices.json,{folder}/time-batch-1.json,{folder}/time-batch-16.json"
    )
