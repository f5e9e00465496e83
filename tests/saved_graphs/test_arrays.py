"""Arrays to feed: a header is not believed, and what is no file is not waited for."""

import os

import numpy as np
import pytest

from tflab.errors import UsageError
from tflab.saved_graphs import arrays

pytestmark = pytest.mark.tensorflow


def header(path, shape, dtype="<f8"):
    with path.open("wb") as file:
        described = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, described)
        file.write(bytes(16))


@pytest.mark.parametrize(
    "shape, claimed",
    [((1 << 40,), "8192 GiB"), ((3,), "24 B"), ((1 << 40, 1 << 40), "9.01e+15 GiB")],
)
def test_a_header_that_claims_more_than_there_is_is_refused_before_reading(
    shape, claimed, tmp_path
):
    header(tmp_path / "a.npy", shape)
    with pytest.raises(UsageError) as error:
        arrays.load("x", str(tmp_path / "a.npy"))
    assert str(error.value).startswith(
        f"'{tmp_path}/a.npy' cannot be fed to 'x': its header declares"
    )
    assert str(error.value).endswith(", but 16 B follow.")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_an_array_of_every_version_is_loaded(version, tmp_path):
    values = np.arange(6.0).reshape(2, 3)
    with (tmp_path / "a.npy").open("wb") as file:
        np.lib.format.write_array(file, values, version)
    assert arrays.load("x", str(tmp_path / "a.npy")).tolist() == values.tolist()


def test_what_is_no_array_is_one_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("1 2 3")
    np.savez(tmp_path / "several.npz", a=[1], b=[2])
    np.save(tmp_path / "objects.npy", np.array([object()]), allow_pickle=True)
    for name in ("pipe", "empty", "text", "several.npz", "objects.npy", ".", "missing"):
        with pytest.raises(UsageError) as error:
            arrays.load("x", str(tmp_path / name))
        assert "\n" not in str(error.value)
