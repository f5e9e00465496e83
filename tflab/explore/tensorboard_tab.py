"""TensorBoard's tab Life, which shows the lives in the logdirs of runs.

It imports no TensorFlow and starts no process. A logdir may be huge, damaged or from a stranger: it
is searched up to a limit, a run is requested by a name that was listed, and errors
become sentences in the tab.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tensorboard.plugins import base_plugin
from werkzeug.wrappers import Request, Response

from tflab.errors import TflabError
from tflab.escaping import visible
from tflab.explore import markup
from tflab.report import html, storage

TAB = "Life"
OLD_S = 5.0  # the logdir is searched again after this time


class Loader(base_plugin.TBLoader):
    """How TensorBoard finds the plugin."""

    def load(self, context: base_plugin.TBContext) -> Plugin:
        return Plugin(context)


class Plugin(base_plugin.TBPlugin):
    plugin_name = "tflab_life"

    def __init__(self, context: base_plugin.TBContext) -> None:
        self.logdir = context.logdir
        self.known: Mapping[str, Path] = {}  # the visible name of each run, and its file
        self.searched = -OLD_S  # when the last search ended

    def frontend_metadata(self) -> base_plugin.FrontendMetadata:
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name=TAB)

    def is_active(self) -> bool:
        return bool(self.runs())

    def get_plugin_apps(self) -> dict[str, Callable[..., object]]:
        routes = {
            "/index.js": script,
            "/style.css": style,
            "/page.html": page,
            "/runs": self.list,
            "/run": self.run,
        }
        return {path: Request.application(with_error_pages(made)) for path, made in routes.items()}

    def runs(self) -> Mapping[str, Path]:
        """Return the runs in the logdir, searched again if the last search is old."""
        if self.logdir and time.monotonic() - self.searched > OLD_S:
            paths = storage.runs(self.logdir)
            self.known = {visible(name): path for name, path in paths.items()}
            self.searched = time.monotonic()
        return self.known

    def list(self, request: Request) -> Response:
        return as_json([*self.runs()])

    def run(self, request: Request) -> Response:
        path = self.runs().get(request.args.get("run", ""))
        if path is None:
            raise TflabError("This run is no longer in the logdir.")
        life = storage.read(path)
        try:
            return as_json(markup.for_page(life))
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            raise TflabError(f"{storage.UNSHOWN}its tables make no sense.") from None


def with_error_pages(route: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Return a route that answers with a sentence where this one raises a TflabError."""

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
    """Return a module that fills the page when it is imported, so `render` does nothing."""
    joined = html.script(markup.FOLDER / "tab.js")
    return Response(f"{joined}export function render() {{}}\n", mimetype="text/javascript")


def style(request: Request) -> Response:
    return Response(markup.style(), mimetype="text/css")


def page(request: Request) -> Response:
    policy = {"Content-Security-Policy": "default-src 'none'"}
    return Response(markup.template("tab.html.j2").render(), mimetype="text/html", headers=policy)


def as_json(value: object) -> Response:
    return Response(json.dumps(value), mimetype="application/json")
