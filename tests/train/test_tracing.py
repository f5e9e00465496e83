"""Tracing: first steps of a training stand in Graphs and Profile, and it changes nothing."""

import json
from dataclasses import replace

import numpy as np
import pytest
import tensorflow.compat.v1 as tf1
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from tests.exporters.xspace.test_xspace import convert, table
from tests.train.test_loop import SETTINGS, STEPS, trained, untimed, values
from tflab.train import history, summaries

pytestmark = pytest.mark.tensorflow

PROFILE = "plugins/profile/small-batch-16"


def begun(folder, settings=SETTINGS):
    folder.mkdir()
    history.create(folder / history.NAME, settings)
    return list(trained(folder, settings=settings))


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """A training as it is, and the same without tracing: their folders and what they gave."""
    here = tmp_path_factory.mktemp("both")
    records = {"traced": begun(here / "traced")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(summaries, "TRACED", range(0))
        records["untraced"] = begun(here / "untraced")
    return here, records


def test_a_traced_training_has_the_same_weights_and_losses(both):
    here, records = both
    assert list(map(untimed, records["traced"])) == list(map(untimed, records["untraced"]))
    untraced = values(here / "untraced", STEPS)
    for name, value in values(here / "traced", STEPS).items():
        assert np.array_equal(untraced[name], value), name
    assert not (here / "untraced" / "executed").exists()


def test_profile_has_the_steps_after_the_warm_up_under_their_numbers(both):
    here, _ = both
    (space,) = (here / "traced" / PROFILE).glob("*.xplane.pb")
    overview = table(json.loads(convert(space, "overview_page"))[1])
    assert [row["stepnum"] for row in overview] == [f"step {number}" for number in range(4, 9)]
    stats = table(json.loads(convert(space, "framework_op_stats"))[0])
    assert {row["occurrences"] for row in stats if row["type"] == "ResourceApplyAdam"} == {5}


def test_the_steps_that_were_traced_are_recorded_as_such(both):
    here, _ = both
    for name, numbers in (("traced", [4, 5, 6, 7, 8]), ("untraced", [])):
        steps = history.read(here / name / history.NAME).steps
        assert [step.step for step in steps if step.traced] == numbers


def test_graphs_has_what_ran_and_its_times(both):
    here, _ = both
    events = EventAccumulator(str(here / "traced" / "executed"))
    events.Reload()
    ran = {node.name for node in tf1.GraphDef.FromString(events.Graph().SerializeToString()).node}
    metadata = events.RunMetadata("batch 16")
    timed = {
        stats.node_name for device in metadata.step_stats.dev_stats for stats in device.node_stats
    }
    assert len(timed & ran) > 10
    assert [name for name in timed if name.endswith("ResourceApplyAdam")]


def test_a_training_that_goes_on_is_not_traced_again(tmp_path):
    folder = tmp_path / "one"

    def shown():
        return sorted([*folder.glob("executed/*"), *folder.glob("plugins/profile/*")])

    begun(folder, replace(SETTINGS, epochs=2))
    before = shown()
    assert len(before) == 2
    list(trained(folder))
    assert shown() == before


def test_a_training_as_short_as_its_warm_up_has_nothing_to_show(tmp_path):
    begun(tmp_path / "short", replace(SETTINGS, epochs=1, batch_size=35))
    assert not (tmp_path / "short" / "executed").exists()
