"""Recursion: circles of functions that a graph calls are found, and nothing else is called one."""

import pytest
from google.protobuf import text_format
from tensorflow.core.framework.graph_pb2 import GraphDef

from tflab.errors import TflabError
from tflab.lifecycle import walk
from tflab.records.options import Options
from tflab.saved_graphs import endless, flat

pytestmark = pytest.mark.tensorflow

ENDS = (("input", "a"), ("output", "b"))


def function(name, *calls):
    """A function that hands its number on, through calls of these, from one to the next."""
    taken, nodes = "a", ""
    for place, callee in enumerate(calls):
        nodes += f"node_def {{ {call(callee, f'call{place}', taken)} }}"
        taken = f"call{place}:output:0"
    given, handed = (f'{end}_arg {{ name: "{n}" type: DT_FLOAT }}' for end, n in ENDS)
    signature = f'signature {{ name: "{name}" {given} {handed} }}'
    return f'function {{ {signature} {nodes} ret {{ key: "b" value: "{taken}" }} }}'


def call(callee, name, taken):
    types = "value { list { type: DT_FLOAT } }"
    return (
        f'name: "{name}" op: "PartitionedCall" input: "{taken}" '
        f'attr {{ key: "f" value {{ func {{ name: "{callee}" }} }} }} '
        f'attr {{ key: "Tin" {types} }} attr {{ key: "Tout" {types} }}'
    )


def graph(begins, *functions):
    x = 'name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }'
    nodes = f"node {{ {x} }} node {{ {call(begins, 'call', 'x')} }}"
    library = " ".join(functions)
    text = f"{nodes} library {{ {library} }} versions {{ producer: 1882 }}"
    return text_format.Parse(text, GraphDef())


@pytest.mark.parametrize(
    "functions, circle",
    [
        ([function("f", "f")], ("f",)),
        ([function("f", "g"), function("g", "h", "f"), function("h")], ("f", "g")),
        ([function("f", "g"), function("g", "h"), function("h", "g")], ("g", "h")),
        ([function("f", "g", "h", "g"), function("g", "h"), function("h")], ()),
        ([function("f"), function("g", "g")], ()),  # nobody calls it
    ],
)
def test_a_circle_is_found_where_the_graph_calls_it(functions, circle):
    assert endless.circle(graph("f", *functions)) == circle


def test_a_chain_of_thousands_of_functions_is_followed():
    chain = [function(f"f{place}", f"f{place + 1}") for place in range(3_000)]
    assert endless.circle(graph("f0", *chain, function("f3000"))) == ()
    assert len(endless.circle(graph("f0", *chain, function("f3000", "f1")))) == 3_000


def test_a_function_in_the_argument_of_a_function_is_called():
    within = function("f", "g").replace(
        'func { name: "g" }',
        'func { name: "g" attr { key: "body" value { list { func { name: "f" } } } } }',
    )
    assert endless.circle(graph("f", within, function("g"))) == ("f",)


def test_a_graph_that_would_end_the_process_is_shown_and_not_imported(tmp_path):
    path = tmp_path / "endless.pb"
    path.write_bytes(graph("f", function("f", "f")).SerializeToString())
    shown = next(walk(str(path), Options(), "frontend"))
    assert [node.name for node in shown.nodes] == ["x", "call"]
    said = (
        f"The graph '{path}' cannot be imported: its functions call one another in an endless "
        "cycle: 'f'."
    )
    assert shown.blocked == said
    with pytest.raises(TflabError) as error:
        list(walk(str(path), Options(), "placement"))
    assert str(error.value) == said


@pytest.mark.parametrize(
    "functions",
    [
        [function(f"f{place}", f"f{place + 1}") for place in range(3_000)],
        [function(f"f{place}", *2 * [f"f{place + 1}"]) for place in range(30)],  # 2^30 calls
    ],
    ids=["deep", "many"],
)
def test_calls_without_end_are_laid_out_as_far_as_that_makes_sense(functions):
    whole = graph("f0", *functions, function(f"f{len(functions)}"))
    layout = flat.Layout(whole, {f.signature.name: f for f in whole.library.function})
    layout.lay_out({"x", "call"}, ())
    assert "x" in layout.nodes
    assert layout.called <= flat.MOST + 2
    assert max(name.count("/") for name in layout.nodes) <= flat.DEEPEST + 1
