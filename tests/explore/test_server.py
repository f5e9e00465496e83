"""The server: its own page gets answers, and nobody else. No program runs here."""

import contextlib
import http.client
import json
import re
import threading

import pytest

from tests.approval import approve, refused
from tflab.errors import UsageError
from tflab.explore import markup, server
from tflab.explore import request as requests
from tflab.explore.__main__ import opening, parser, run

EVIL = "</script><img src=x onerror=alert(1)>"
STAGE = {
    "stage": "frontend",
    "graph": {"title": "program.py", "nodes": []},
    "parts": {
        "In short": [
            f"A sentence of {EVIL}.",
            {
                "table": "T",
                "columns": [["node", False], ["n", True]],
                "rows": [["a", "1"]],
                "more": 2,
            },
        ]
    },
    "nodes": {"a": ["forward", "Const()"]},
}


class Scripted:
    """In place of a process of programs: it says what it is given, and notes what it is asked."""

    def __init__(self):
        self.said, self.asked, self.restarts = [STAGE, {"done": True}], [], 0

    def life(self, page, number, given):
        self.asked.append((page, number, given))
        yield from self.said

    def restart(self):
        self.restarts += 1


class Site:
    def __init__(self, app, worker, path):
        self.app, self.worker, self.path = app, worker, path
        self.own = {
            "Host": app.host,
            "Origin": f"http://{app.host}",
            "Cookie": f"{app.cookie}={app.token}",
            "Content-Type": "application/json",
        }

    def request(self, method, path, body=None, **headers):
        """The response, with the headers of the server's own page but for these; None leaves one
        out."""
        connection = http.client.HTTPConnection(*self.app.host.split(":"), timeout=10)
        with contextlib.closing(connection):
            connection.putrequest(method, path, skip_host=True)
            sent = {**self.own, **headers}
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            if data is not None:
                sent.setdefault("Content-Length", str(len(data)))
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.send(data or b"")
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()

    def run(self, **changes):
        body = {"page": "p", "number": 1, "asked": {"text": "x = 1"}} | changes
        status, _, text = self.request("POST", "/run", body)
        return [json.loads(line) for line in text.splitlines()] if status == 200 else (status, text)


@pytest.fixture
def site(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("x = 1\n")
    worker = Scripted()
    start, _ = opening(path, None)
    with server.listening(0) as listener:
        app = server.App(worker, start, path, listener.getsockname()[1])
        answering = server.served(app, listener)
        thread = threading.Thread(target=answering.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield Site(app, worker, path)
        answering.shutdown()
        thread.join()
        answering.server_close()


def test_the_printed_address_leads_to_the_page_without_the_token(site):
    path = site.app.address.removeprefix(f"http://{site.app.host}")
    status, headers, _ = site.request("GET", path, Cookie=None, Origin=None)
    assert (status, headers["Location"]) == (303, "/")
    assert headers["Set-Cookie"] == f"{site.own['Cookie']}; HttpOnly; Path=/; SameSite=Strict"
    status, headers, page = site.request("GET", "/", Origin=None)
    assert (status, site.app.token in page) == (200, False)
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; img-src data:; "
        r"base-uri 'none'; form-action 'none'; connect-src 'self'; frame-ancestors 'none'",
        headers["Content-Security-Policy"],
    )
    assert headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": None},
        {"Cookie": "tflab-explore-1=guess"},
        {"Host": "evil.example"},
        {"Host": "localhost"},
        {"Host": None},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
    ],
)
@pytest.mark.parametrize("path", ["/run", "/restart"])
def test_a_request_from_elsewhere_is_refused_and_runs_nothing(site, path, headers):
    body = {"page": "p", "number": 1, "asked": {"text": "x"}}
    assert site.request("POST", path, body, **headers)[0] == 403
    assert (site.worker.asked, site.worker.restarts) == ([], 0)


@pytest.mark.parametrize("path", ["/", "/?token=guess", "/file?known="])
def test_nothing_is_read_without_the_token_or_from_another_page(site, path):
    assert site.request("GET", path, Cookie=None, Origin=None)[0] == 403
    assert site.request("GET", path, Origin="http://evil.example")[0] == 403
    assert site.request("GET", path, Host="evil.example", Origin=None)[0] == 403


def test_a_form_of_another_kind_is_refused(site):
    assert site.request("POST", "/run", b"{}", **{"Content-Type": "text/plain"})[0] == 415
    assert site.request("POST", "/run", b"nonsense")[0] == 400
    assert site.request("POST", "/run", b"[" * 100_000)[0] == 400
    assert site.request("POST", "/run", b"[]")[0] == 400
    assert site.request("GET", "/run")[0] == 404
    assert site.request("POST", "/run", b"x" * 2**20)[0] == 413


def test_a_program_that_is_too_long_is_refused(site):
    status, text = site.run(asked={"text": "x" * (requests.LARGEST_TEXT + 1)})
    told = "The program has 100,001 characters; it may have at most 100,000."
    assert (status, told in text) == (400, True)
    assert site.worker.asked == []


NO_SUCH = (
    *(("batch_size", 0), ("batch_size", True), ("devices", 99)),
    *(("xla", "yes"), ("predict", "yes"), ("without", ["all"]), ("data_dir", "/")),
)
REQUESTS = (None, {"text": 1}, *({"text": "x", name: value} for name, value in NO_SUCH))


def test_a_request_that_makes_no_sense_is_refused_in_a_sentence(site):
    assert site.run(page="p" * 64)[-1] == {"done": True}
    pages = [{"page": name} for name in ("p" * 65, 7, None)]
    said = []
    for changes in (*({"asked": given} for given in REQUESTS), *pages, {"number": "1"}):
        status, text = site.run(**changes)
        assert status == 400
        said.append(f"{changes}: {text.rstrip()}")
    approve("requests-refused.txt", "\n".join(said))


def test_stages_are_told_as_markup_in_which_no_name_acts(site):
    stage, done = site.run()
    assert done == {"done": True}
    assert (stage["stage"], stage["graph"]) == ("frontend", STAGE["graph"])
    html = stage["parts"]["In short"]
    assert "A sentence of &lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;." in html
    assert '<td>a</td><td class="right">1</td>' in html
    assert "and 2 more" in html
    assert "since" not in stage
    ((page, number, given),) = site.worker.asked
    assert (page, number, given) == ("p", 1, requests.ProgramRequest("x = 1"))


def test_an_edit_is_told_against_the_last_life_of_its_own_page(site):
    site.run()
    site.worker.said = [
        {**STAGE, "nodes": {"b": ["forward", "Add()"]}},
        {"error": {"message": "no", "line": 1}},
    ]
    stage, error = site.run(number=2)
    assert stage["marks"] == {"b": "new"}
    assert '<td>gone</td><td class="right">1</td><td>a</td>' in stage["since"]
    assert error == {"error": {"message": "no", "line": 1}}
    site.worker.said = [STAGE, {"done": True}]
    assert "No node is new" in site.run(number=3)[0]["since"]  # a life that failed is not the last
    assert "since" not in site.run(page="another")[0]


def test_the_file_is_followed(site):
    known = requests.mark("x = 1\n")
    assert site.request("GET", f"/file?known={known}")[0] == 204
    site.path.write_text("x = 2\n")
    status, _, text = site.request("GET", f"/file?known={known}")
    assert (status, json.loads(text)) == (
        200,
        {"text": "x = 2\n", "mark": requests.mark("x = 2\n")},
    )
    site.path.unlink()
    assert site.request("GET", "/")[0] == 200
    status, _, text = site.request("GET", f"/file?known={known}")
    assert (status, "No such file" in text) == (400, True)
    site.app.path = None
    assert site.request("GET", "/file?known=")[0] == 404


def test_what_cannot_be_opened_is_said(tmp_path):
    binary, folder, large = (tmp_path / name for name in ("a.py", "b.py", "c.py"))
    binary.write_bytes(b"\xff\xfe")
    folder.mkdir()
    large.write_text("#" * (requests.LARGEST_TEXT + 1))
    paths = (tmp_path / "none.py", tmp_path / "a.txt", binary, folder, large)
    said = [refused(opening, path, None) for path in paths]
    said += [refused(opening, None, model) for model in ("toyy", "no.module:build")]
    approve("programs-not-opened.txt", "\n".join(said).replace(str(tmp_path), "FOLDER"))
    start, source = opening(None, "toy")
    assert (start.name, source.function, start.mark) == ("toy.py", "build", None)
    assert "def build() -> Model:" in start.text


def test_a_port_in_use_is_said():
    with server.listening(0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"Port {port} cannot be used: Address already in use"):
            run(parser().parse_args(["--port", str(port), "--no-browser"]))


def test_a_program_in_the_page_is_no_markup():
    assert EVIL not in markup.page(markup.FirstContent("a.py", EVIL))[0]


def test_half_of_a_character_is_refused(site):
    half = {"asked": {"text": "x = '\ud800'"}, "page": "p", "number": 1}
    status, _, text = site.request("POST", "/run", half)
    assert (status, text) == (400, "The text has half of a character.\n")
