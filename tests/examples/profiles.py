"""Profiles of TensorBoard, as XProf's own converters read them."""

import json
import tempfile
from pathlib import Path
from typing import Any

from xprof.convert import raw_to_tool_data

from tflab.exporters import xspace
from tflab.records.timed import Capture


def drawn(recorded: Capture, tool: str) -> Any:
    """What a page of TensorBoard Profile is given to draw."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "host.xplane.pb")
        path.write_bytes(xspace.encode(recorded))
        return json.loads(raw_to_tool_data.xspace_to_tool_data([str(path)], tool, {})[0])


def table(page: Any) -> list[dict[str, Any]]:
    names = [column["id"] for column in page["cols"]]
    return [dict(zip(names, [cell["v"] for cell in row["c"]], strict=True)) for row in page["rows"]]
