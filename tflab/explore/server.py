"""Server: serves the page and answers its requests, on this machine only and for one reader only.

The page runs programs with the rights of its user. So the server listens on 127.0.0.1, requires a
token that only its own process knows, and the exact Host and Origin of its own page.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from werkzeug.exceptions import HTTPException, abort
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from tflab.errors import TflabError, UsageError, reason
from tflab.explore import markup
from tflab.explore.request import LARGEST_TEXT, Message, ProgramRequest, mark, text_of
from tflab.explore.request import read as read_program
from tflab.explore.worker_pool import WorkerProcess

HOST = "127.0.0.1"
LARGEST = 4 * LARGEST_TEXT  # bytes of a request
PAGES = 16  # other pages whose last version is kept
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
CLOSED = "Open the whole address that the terminal shows."
Life = dict[str, markup.Nodes]  # by stage


class App:
    """The answers of one server. `path` is the file that the page follows, if any."""

    def __init__(
        self, worker: WorkerProcess, start: markup.FirstContent, path: Path | None, port: int
    ) -> None:
        self.worker, self.start, self.path = worker, start, path
        self.token = secrets.token_urlsafe(32)
        self.host = f"{HOST}:{port}"
        self.cookie = f"tflab-explore-{port}"
        self.versions: dict[str, Life] = {}  # page -> the last that ran to its end

    @property
    def address(self) -> str:
        """Return the address that opens the page."""
        return f"http://{self.host}/?token={self.token}"

    def respond(self, request: Request) -> Response:
        try:
            response = self.answer(request)
        except HTTPException as error:
            response = Response(f"{error.description}\n", error.code, mimetype="text/plain")
        except TflabError as error:
            response = Response(f"{error}\n", 400, mimetype="text/plain")
        response.headers.update(HEADERS)
        if "Content-Security-Policy" not in response.headers:
            response.headers["Content-Security-Policy"] = "default-src 'none'"
        return response

    def answer(self, request: Request) -> Response:
        # Only requests from the server's own page, under its exact name
        if request.environ.get("HTTP_HOST") != self.host:
            abort(403, f"This server answers only requests to {self.host}.")
        origin = request.headers.get("Origin")
        if origin != f"http://{self.host}" and (request.method != "GET" or origin is not None):
            abort(403, "This server answers only its own page.")
        given = request.args.get("token", "")
        if request.path == "/" and given and is_token(given, self.token):
            # In the address it would be visible, and shared by accident
            response = Response(status=303, headers={"Location": "/"})
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict")
            return response
        if not is_token(request.cookies.get(self.cookie, ""), self.token):
            abort(403, CLOSED)
        route = ROUTES.get((request.method, request.path))
        if route is None:
            abort(404, "There is no such page.")
        return route(self, request)

    # Routes

    def opened(self, request: Request) -> Response:
        html, policy = markup.page(self.start)  # which then looks for another text in its file
        return Response(html, mimetype="text/html", headers={"Content-Security-Policy": policy})

    def run(self, request: Request) -> Response:
        body = read(request)
        number, name = body.get("number"), body.get("page")
        if not (isinstance(name, str) and len(name) <= 64 and isinstance(number, int)):
            abort(400, "A request must have a page and a number.")
        given = read_program(body.get("asked"))
        lines = (json.dumps(message) + "\n" for message in self.told(name, number, given))
        return Response(lines, mimetype="application/x-ndjson")

    def told(self, name: str, number: int, given: ProgramRequest) -> Iterator[Message]:
        """Yield the messages of a program's stages, as the page shows them."""
        earlier = self.versions.get(name, {})
        life: Life = {}
        for message in self.worker.life(name, number, given):
            if stage := message.get("stage"):
                life[stage] = message["nodes"]
                message = markup.for_page(message, earlier.get(stage))
            yield message
            if "done" in message:
                self.versions = dict([*self.versions.items()][-PAGES:]) | {name: life}

    def restart(self, request: Request) -> Response:
        read(request)
        self.worker.restart()
        return Response(status=204)

    def file(self, request: Request) -> Response:
        """Return the text of the file that the page follows, or 204 if the page has it already."""
        if self.path is None:
            abort(404, "The page follows no file.")
        text = text_of(self.path)
        if mark(text) == request.args.get("known"):
            return Response(status=204)
        content = json.dumps({"text": text, "mark": mark(text)})
        return Response(content, mimetype="application/json")


ROUTES: Mapping[tuple[str, str], Callable[[App, Request], Response]] = {
    ("GET", "/"): App.opened,
    ("GET", "/file"): App.file,
    ("POST", "/run"): App.run,
    ("POST", "/restart"): App.restart,
}


def is_token(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def read(request: Request) -> Message:
    """Return the JSON object of a request; refuse a request without one."""
    if request.mimetype != "application/json":
        abort(415, "A request is JSON.")
    if request.content_length is None or request.content_length > LARGEST:
        abort(413, f"A program may have at most {LARGEST_TEXT:,} characters.")
    try:
        body = json.loads(request.get_data())
    except (ValueError, RecursionError):
        abort(400, "A request is JSON.")
    if not isinstance(body, dict):
        abort(400, "A request is an object.")
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # JSON can have half of a character, which no file can
        abort(400, "The text has half of a character.")
    return body


class Quiet(WSGIRequestHandler):
    """A handler that does not log every request."""

    timeout = 60  # seconds without data on a connection

    def log(self, type: str, message: str, *args: object) -> None:
        pass


def listening(port: int) -> socket.socket:
    """Return a socket on this machine only; port 0 is any free one. Raises UsageError if taken."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else reason(error)
        raise UsageError(
            f"Port {port} cannot be used: {why}. Give another port with --port, or omit --port."
        ) from error


def served(app: App, listener: socket.socket) -> BaseWSGIServer:
    """Return a server that is ready to answer, with a thread for each request."""
    port = listener.getsockname()[1]
    answers = Request.application(app.respond)
    server = make_server(
        HOST, port, answers, threaded=True, request_handler=Quiet, fd=listener.fileno()
    )
    server.daemon_threads = True  # type: ignore[attr-defined]
    return server
