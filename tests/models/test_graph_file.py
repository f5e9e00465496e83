"""Graph files: recognised by content; everything else is refused in one sentence."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests import graphs
from tests.approval import approve, refused
from tflab.errors import TflabError
from tflab.models import graph_file

pytestmark = pytest.mark.tensorflow


def test_each_kind_is_recognised_by_its_content_and_has_the_checkpoint_of_its_stem(tmp_path):
    graph = graphs.graph_def(graphs.dense)
    meta = Path(graphs.meta_graph(tmp_path / "meta.pbtxt"))  # `model.meta`
    saved = Path(graphs.saved_model_v2(tmp_path / "graph.pb"))
    beside, variables = meta.parent / "model", saved / "variables" / "variables"
    for path, *expected in (
        (graphs.write(tmp_path / "saved_model.txt", graph), "GraphDef", None),
        (graphs.write(meta.parent / "other.pb", graph), "GraphDef", None),
        (graphs.write(meta.parent / "model.pb", graph), "GraphDef", str(beside)),
        (meta, "MetaGraphDef", str(beside)),
        (saved, "SavedModel", str(variables)),
        (saved / "saved_model.pb", "SavedModel", str(variables)),
    ):
        read = graph_file.read(Path(path))
        assert [read.kind, read.checkpoint] == expected


NO_GRAPHS = (
    *(b"", b"\x89PNG\r\n\x1a\n" + bytes(100), b"# Read me\n\nThis is no graph.\n"),
    *(b"\x89HDF\r\n\x1a\n" + bytes(100), b"\x0a\xff\xff\xff\xff\x07"),  # which claims 2 GiB
)


def test_what_is_no_graph_is_refused_and_a_folder_says_what_is_in_it_instead(tmp_path):
    said, path = [], tmp_path / "graph.pb"
    for content in NO_GRAPHS:
        path.write_bytes(content)
        said.append(refused(graph_file.read, path))
    path.rename(tmp_path / "model.index")
    said.append(refused(graph_file.read, tmp_path))
    approve("no-graphs.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graphs")
    graph = graphs.graph_def(graphs.dense)
    graphs.saved_model_v2(folder / "v2")
    return [
        graph.SerializeToString(),
        str(graph).encode(),
        (folder / "v2" / "saved_model.pb").read_bytes(),
    ]


@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_damage_gives_a_graph_or_one_sentence(contents, tmp_path, data):
    content = bytearray(data.draw(st.sampled_from(contents)))
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path / "graph"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        assert graph_file.read(path).graph_def.node
    except TflabError as error:
        assert str(path) in str(error)
