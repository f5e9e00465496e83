"""TensorBoard's tab Life, which shows the lives in the logdirs of runs.

It imports no TensorFlow and starts no process. A logdir may be huge, damaged or from a stranger: it
is searched in a thread, a run is requested by a hash of its name and never by a path, and errors
become sentences in the tab.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

from tflab.errors import TflabError
from tflab.escaping import visible
from tflab.explore import markup
from tflab.report import html, storage

TAB = "Life"
OLD_S = 5.0  # the logdir is searched again after this time
PATIENCE_S = 1.0  # for a search; results of a longer one are shown later
SCRIPT = "tab.js"


class Loader(base_plugin.TBLoader):
    """How TensorBoard finds the plugin."""

    def load(self, context: base_plugin.TBContext) -> Plugin:
        return Plugin(context)


class Plugin(base_plugin.TBPlugin):
    plugin_name = "tflab_life"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self.logdir = context.logdir or None
        self.known: Mapping[str, tuple[str, Path]] = {}  # mark -> name and file of a run
        self.searched = -OLD_S  # when the last search began
        self.search: threading.Thread | None = None

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name=TAB)

    def is_active(self) -> bool:
        return bool(self.runs())

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        routes = {
            "/index.js": script,
            "/style.css": style,
            "/page.html": page,
            "/runs": self.list,
            "/run": self.run,
        }
        return {
            path: Request.application(with_error_pages(route)) for path, route in routes.items()
        }

    def runs(self) -> Mapping[str, tuple[str, Path]]:
        """The known runs; starts a new search if one is due."""
        busy = self.search is not None and self.search.is_alive()
        if self.logdir and not busy and time.monotonic() - self.searched > OLD_S:
            self.searched = time.monotonic()
            self.search = threading.Thread(target=self.look, daemon=True)
            self.search.start()
            self.search.join(PATIENCE_S)
        return self.known

    def look(self) -> None:
        folders = storage.runs(self.logdir or "")
        self.known = {run_id(name): (name, path) for name, path in folders.items()}

    def list(self, request: Request) -> Response:
        """The mark, the name and the version of each run."""
        rows = ((mark, visible(name), version(path)) for mark, (name, path) in self.runs().items())
        return as_json(list(rows))

    def run(self, request: Request) -> Response:
        """A run, and with `before` the differences from another one."""
        run, other = (request.args.get(key) for key in ("run", "before"))
        life, before = self.life(run or ""), self.life(other) if other else None
        try:
            if before is None or other is None:
                return as_json({"run": markup.for_page(life), "before": None})
            heads = visible(self.known[other][0]), visible(self.known[run or ""][0])
            shown = markup.for_page(life, before, heads)
            return as_json({"run": shown, "before": markup.for_page(before)})
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            raise TflabError("The file of this run is damaged: its tables make no sense.") from None

    def life(self, mark: str) -> dict[str, Any]:
        if mark not in self.runs():
            raise TflabError("This run is no longer in the logdir.")
        return storage.read(self.known[mark][1])


def run_id(name: str) -> str:
    """The identifier of a run in the page: its name may have characters that an address cannot
    have."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def version(path: Path) -> str:
    """What changes when the file of a run does."""
    try:
        about = path.stat()
    except OSError:
        return ""
    return f"{about.st_mtime_ns} {about.st_size}"


def with_error_pages(route: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """The same with a sentence instead of an error."""

    def answer(request: Request) -> Response:
        try:
            response = route(request)
        except TflabError as error:
            response = Response(str(error), 404, mimetype="text/plain")
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-cache, must-revalidate"
        return response

    return answer


def script(request: Request) -> Response:
    """A module: it fills the page when it is imported, so that `render` has nothing to do."""
    joined = html.join_modules([*markup.modules(), markup.read(SCRIPT)])
    return Response(f"{joined}export function render() {{}}\n", mimetype="text/javascript")


def style(request: Request) -> Response:
    return Response(markup.style(), mimetype="text/css")


def page(request: Request) -> Response:
    text = html.environment(markup.read).from_string(markup.read("tab.html.j2")).render()
    return Response(
        text, mimetype="text/html", headers={"Content-Security-Policy": "default-src 'none'"}
    )


def as_json(value: Any) -> Response:
    return Response(json.dumps(value), mimetype="application/json")
