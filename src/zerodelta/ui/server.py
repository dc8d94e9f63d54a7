"""The server of the planner page: the standard library's, on the loopback address only.

It has four static files and two answers, takes no data, writes nothing, and is no part of any
privacy claim. A page of another origin can neither ask it, nor read its answers, nor be one of its
frames. Answers are computed one at a time, each for a few seconds at most.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any, TypeAlias, final
from urllib.parse import parse_qsl, urlsplit

from zerodelta.errors import ZeroDeltaError
from zerodelta.ui.planned import answer, break_even, form_of_all

HOST = "127.0.0.1"
_LONGEST = 2000
"""Characters of an address; requests of the page have a few hundred."""
_SECONDS = 3.0
"""After so many an answer is sent without what it lacks."""
_PATIENCE = 20.0
"""Seconds that a request waits for others, or a connection for its next bytes."""

_STATIC = {
    "/": ("planner.html", "text/html; charset=utf-8"),
    "/planner.css": ("planner.css", "text/css; charset=utf-8"),
    "/planner.js": ("planner.js", "text/javascript; charset=utf-8"),
    "/chart.js": ("chart.js", "text/javascript; charset=utf-8"),
    "/favicon.ico": ("planner.svg", "image/svg+xml"),
}
_Ask: TypeAlias = Callable[[Mapping[str, str], Callable[[], bool]], dict[str, Any]]
_ANSWERS: Mapping[str, _Ask] = {
    "/api/form": lambda _request, _late: form_of_all(),
    "/api/plan": answer,
    "/api/break-even": break_even,
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


@final
class PlannerServer(ThreadingHTTPServer):
    """Serves the planner on a port of this computer; 0 takes a free one."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.one_at_a_time = threading.Lock()

    @property
    def address(self) -> str:
        """Where to look."""
        return f"http://{HOST}:{self.server_port}/"


@final
class _Handler(BaseHTTPRequestHandler):
    """Answers GET requests for the page, its files and its numbers."""

    server: PlannerServer
    server_version, sys_version = "zerodelta", ""
    timeout = _PATIENCE

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        names = {f"{host}:{self.server.server_port}" for host in (HOST, "localhost")}
        if self.headers.get("Host") not in names:  # another name that leads here: not our page
            self._send(403, "text/plain; charset=utf-8", b"not served under this name")
        elif self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            self._send(403, "text/plain; charset=utf-8", b"not served to other pages")
        elif len(self.path) > _LONGEST:
            self._send(414, "text/plain; charset=utf-8", b"too long")
        elif parts.path in _STATIC:
            name, kind = _STATIC[parts.path]
            self._send(200, kind, (files("zerodelta.ui") / "static" / name).read_bytes())
        elif parts.path in _ANSWERS:
            self._answer(_ANSWERS[parts.path], dict(parse_qsl(parts.query)))
        else:
            self._send(404, "text/plain; charset=utf-8", b"there is no such page")

    def _answer(self, ask: _Ask, request: Mapping[str, str]) -> None:
        status, found = 503, {"refused": "the planner is busy with other requests."}
        if self.server.one_at_a_time.acquire(timeout=_PATIENCE):
            until = time.monotonic() + _SECONDS
            try:
                status, found = 200, ask(request, lambda: time.monotonic() > until)
            except (ZeroDeltaError, ValueError, ArithmeticError) as error:
                status, found = 200, {"refused": str(error)}  # half typed is no failure of the page
            finally:
                self.server.one_at_a_time.release()
        body = json.dumps(found, ensure_ascii=False).encode("utf-8")
        self._send(status, "application/json; charset=utf-8", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def serve(port: int, started: Callable[[str], None]) -> None:
    """Serve the planner until interrupted; `started` is told its address."""
    with PlannerServer(port) as server:
        started(server.address)
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            return
