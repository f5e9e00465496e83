"""What convert writes for Model Explorer: graph and node data, whole, from records by hand."""

import json

import pytest

from tflab.analysis import tracks
from tflab.convert import explorer
from tflab.convert.reading import Recording, TrackSummary
from tflab.errors import UsageError
from tflab.records.graph import Node
from tflab.records.placed import Transfer
from tflab.records.timed import OpRun, StepTime

WORKER = "/job:worker/replica:0/task:1/device:CPU:0"
SERVER = "/job:ps/replica:0/task:0/device:CPU:0"
GPU, STREAM = "/job:localhost/replica:0/task:0/device:GPU:0", "/device:GPU:0/stream:13"


def recorded(nodes, runs, kinds, transfers=()):
    """Two steps from 0 on, of which the second has nothing but what `runs` says."""
    counted = (TrackSummary(device, kind, 1, 1, 0) for device, kind in kinds.items())
    steps = (StepTime(0, 0, 100), StepTime(1, 100, 100))
    return Recording(("my/trace.pb",), ("a", "b"), steps, runs, tuple(counted), nodes, transfers)


def written(folder, what):
    notes = list(explorer.write(folder, what))
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}, notes


def node(name, attrs, edges=()):
    scope, _, label = name.rpartition("/")
    return {
        "id": name,
        "label": label,
        "namespace": scope,
        "subgraphIds": [],
        "attrs": [{"key": key, "value": value} for key, value in attrs.items()],
        "incomingEdges": [
            {"sourceNodeId": source, "sourceNodeOutputId": output, "targetNodeInputId": number}
            for source, output, number in edges
        ],
        "inputsMetadata": [],
        "outputsMetadata": [],
    }


def data(title, **values):
    """The one provider of a file, on the graph of the trace."""
    return {
        "trace": {
            "name": title,
            "results": {name: {"value": value} for name, value in values.items()},
            "gradient": [
                {"stop": 0.0, "bgColor": "#fff7ec"},
                {"stop": 0.5, "bgColor": "#fdbb84"},
                {"stop": 1.0, "bgColor": "#d7301f"},
            ],
        }
    }


def test_the_nodes_of_two_tasks_have_attributes_colours_and_times_of_their_own(tmp_path):
    nodes = (
        Node("v", "VarHandleOp", device=SERVER),
        Node("v_S1", "_Send", ("v",), device=SERVER),
        Node("v_S2", "_Recv", device=WORKER),
        Node("a/mul", "Mul", ("v_S2", "v_S2:1"), ("v_S2",), device=WORKER),
    )
    runs = (
        OpRun(0, "_SOURCE", "NoOp", WORKER, 0, 9_000),
        OpRun(0, "v", "VarHandleOp", SERVER, 0, 2_000, 8),
        OpRun(0, "RecvTensor", "RecvTensor", WORKER, 0, 50_000),
        OpRun(0, "a/mul", "_FusedMul", WORKER, 0, 6_000),
        OpRun(1, "a/mul", "_FusedMul", WORKER, 9, 8_000),
        OpRun(1, "_arg_x", "_Arg", WORKER, 9, 4_000),
    )
    sent = (Transfer("v", "v_S1", "v_S2", SERVER, WORKER, "", None, None),)
    kinds = {WORKER: tracks.OPS, SERVER: tracks.OPS}
    files, notes = written(tmp_path, recorded(nodes, runs, kinds, sent))
    server, worker = "ps task 0 CPU:0", "task 1 CPU:0"
    assert files.pop("graphs.json") == {
        "label": "trace",
        "graphs": [
            {
                "id": "trace",
                "nodes": [
                    node("v", {"op": "VarHandleOp", "device": server}),
                    node("v_S1", {"op": "_Send", "device": server}, [("v", "0", "0")]),
                    node("v_S2", {"op": "_Recv", "device": worker}, [("v_S1", "0", "0")]),
                    node(
                        "a/mul",
                        {"op": "Mul", "device": worker, "ran as": "_FusedMul"},
                        [("v_S2", "0", "0"), ("v_S2", "1", "1"), ("v_S2", "control", "2")],
                    ),
                ],
            }
        ],
    }
    places = {"v": server, "v_S1": server, "v_S2": worker, "a/mul": worker}
    colours = {server: "#f0a8a8", worker: "#a8f0f0"}
    assert files.pop("devices.json") == {
        "trace": {
            "name": "device",
            "results": {
                name: {"value": place, "bgColor": colours[place]} for name, place in places.items()
            },
            "showExpandedSummaryOnGroupNode": True,
        }
    }
    # Of 20 us of ops in two steps; _SOURCE and RecvTensor are none.
    at_server, at_worker = "ps-task-0-CPU-0.json", "task-1-CPU-0.json"
    mul = "a/mul"
    assert files == {
        "time.json": data("time in us", **{"v": 1.0, mul: 7.0}),
        "share.json": data("share of all ops in %", **{"v": 10.0, mul: 70.0}),
        "memory.json": data("memory requested in bytes", **{"v": 4.0, mul: 0.0}),
        f"time-{at_server}": data(f"time on {server} in us", v=1.0),
        f"share-{at_server}": data(f"share of all ops on {server} in %", v=100.0),
        f"memory-{at_server}": data(f"memory requested on {server} in bytes", v=4.0),
        f"time-{at_worker}": data(f"time on {worker} in us", **{mul: 7.0}),
        f"share-{at_worker}": data(f"share of all ops on {worker} in %", **{mul: 77.778}),
    }
    assert notes == [
        "1 name in the traces belongs to no node in the graph, such as '_arg_x': 20.0 % of the "
        "time of all ops is not in the picture.",
        "1 row of the traces is tensors on the wire (RecvTensor), which belong to no node and "
        "are not in the graph.",
    ]


def test_the_time_of_a_node_on_a_gpu_is_that_of_its_kernels(tmp_path):
    runs = (
        OpRun(0, "conv", "Conv2D", GPU, 0, 5_000, 64),
        OpRun(0, "conv", "Conv2D", STREAM, 3_000, 40_000),
    )
    kinds = {GPU: tracks.LAUNCHES, STREAM: tracks.KERNELS}
    files, notes = written(tmp_path, recorded((Node("conv", "Conv2D"),), runs, kinds))
    assert notes == []
    assert files["graphs.json"]["graphs"][0]["nodes"] == [
        node("conv", {"op": "Conv2D", "ran on": "GPU:0, GPU:0/stream:13"})
    ]
    del files["graphs.json"]
    launches, kernels = "GPU:0 (launches of GPU kernels)", "GPU:0/stream:13 (kernels of a stream)"
    of_stream = "GPU-0-stream-13.json"
    assert files == {
        "time.json": data("time in us", conv=20.0),
        "share.json": data("share of all ops in %", conv=100.0),
        "memory.json": data("memory requested in bytes", conv=32.0),
        "time-GPU-0.json": data(f"time on {launches} in us", conv=2.5),
        "share-GPU-0.json": data(f"share of all ops on {launches} in %", conv=100.0),
        "memory-GPU-0.json": data(f"memory requested on {launches} in bytes", conv=32.0),
        f"time-{of_stream}": data(f"time on {kernels} in us", conv=20.0),
        f"share-{of_stream}": data(f"share of all ops on {kernels} in %", conv=100.0),
    }


def test_devices_whose_names_look_alike_have_files_of_their_own():
    devices = (
        "/job:a b/task:1/device:CPU:0",
        "/job:a-b/task:1/device:CPU:0",
        "/../..",
        "A:b",
        "a b",
    )
    assert list(explorer.file_names(devices)) == [
        *("a-b-task-1-CPU-0", "a-b-task-1-CPU-0-2", "device", "A-b", "a-b-2")
    ]


def test_without_a_graph_the_sentence_says_what_to_give(tmp_path):
    with pytest.raises(UsageError) as refused:
        written(tmp_path, recorded((), (OpRun(0, "a", "Op", GPU, 0, 1),), {GPU: tracks.OPS}))
    assert str(refused.value) == (
        "'my/trace.pb' has no graph for Model Explorer to draw; give the graph that ran as "
        "--graph, or record the step with RunOptions(output_partition_graphs=True)."
    )
    assert list(tmp_path.iterdir()) == []
