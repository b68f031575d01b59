"""The local server of ``probgap label``: one page, and nothing without its token."""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from typing import Any

from probgap._core.errors import load_library
from probgap.cli._labelling import READ, AnsweredError, Session

_LONGEST_BODY = 4096
_MOST_MORE = 1000
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


def check_server() -> None:
    """Raise, before any work, if a library of the extra is missing."""
    for name in ("starlette", "uvicorn"):
        load_library(name, extra="label", purpose="probgap label")


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen()  # who comes before the server is ready waits
    except OSError:
        sock.close()
        raise
    return sock


def is_local(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses requests without the token, for another host, or from another page.

    A page elsewhere could let its own name point to this machine (DNS rebinding): a host
    must be local or, if the network is allowed, an address or this machine's name. It
    could also send requests here by itself: they would come from another origin.
    """

    def __init__(self, app: Any, token: str, port: int, *, network: bool) -> None:
        self._app, self._token, self._port = app, token, port
        self._network, self.cookie = network, f"probgap_{port}"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        from starlette.datastructures import MutableHeaders
        from starlette.requests import Request
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        request = Request(scope, receive)
        shown = scope["path"] == "/" and request.query_params.get("token", "")

        async def send_safely(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if shown and message["status"] == 200:
                    cookie = f"{self.cookie}={self._token}; Path=/; HttpOnly; "
                    headers["set-cookie"] = cookie + "SameSite=Strict"
            await send(message)

        refusal = self._refusal(request, shown or "")
        app = PlainTextResponse(refusal, 403) if refusal else self._app
        await app(scope, receive, send_safely)

    def _refusal(self, request: Any, shown: str) -> str | None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return "This host is not served here."
        if not _is_own_page(request, f"http://{hosts[0]}"):
            return "This page may not ask here."
        token = shown or request.cookies.get(self.cookie, "")
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return "Open the address that probgap label printed: it holds a token."
        return None

    def _is_ours(self, host: str) -> bool:
        name, _, port = host.rpartition(":")
        if port != str(self._port):
            return False
        name = name.strip("[]").lower()
        if is_local(name) or not self._network:
            return is_local(name)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name in (socket.gethostname().lower(), socket.getfqdn().lower())
        return True


def _is_own_page(request: Any, origin: str) -> bool:
    """Return whether our page asks, or a person who opens it."""
    origins = request.headers.getlist("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if any(each != origin for each in origins):
        return False
    if request.method == "POST":
        kind = request.headers.get("content-type", "")
        return bool(origins) and site == "same-origin" and kind == "application/json"
    # A link elsewhere may lead to the page, whose address then holds the token.
    return site in ("same-origin", "none") or request.url.path == "/"


def make_app(
    session: Session, about: dict[str, Any], token: str, port: int, *, network: bool
) -> Guard:
    """Return the application: a page, and answers to what its script asks."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    style = files("probgap._core").joinpath("style.css").read_bytes()

    def page(name: str) -> Any:
        kind = name.rpartition(".")[2]
        content = files("probgap.cli").joinpath("static", name).read_bytes()
        content = style + content if kind == "css" else content

        async def send(_: Any) -> Any:
            return Response(content, media_type=_TYPES[kind])

        return send

    def api(work: Callable[[Any], dict[str, Any]]) -> Any:
        async def respond(request: Any) -> Any:
            asked: dict[str, Any] | None = dict(request.query_params)
            if request.method == "POST":
                asked = await _read_body(request)
            if asked is None or not isinstance(asked.get("tab", ""), str):
                return JSONResponse({"error": "This was not understood."}, 400)
            try:
                return JSONResponse(await run_in_threadpool(work, asked))
            except (KeyError, TypeError, ValueError):
                return JSONResponse({"error": "This was not understood."}, 400)
            except AnsweredError as error:
                now = await run_in_threadpool(session.view, asked.get("tab", "")[:40])
                return JSONResponse({"error": str(error), **now}, 409)
            except OSError as error:
                said = f"The answer could not be saved: {error.strerror or error}."
                return JSONResponse({"error": said}, 507)

        return respond

    def tab(asked: Any) -> str:
        return asked["tab"][:40] or "?"

    def answer(asked: Any) -> dict[str, Any]:
        row, word = asked["row"], asked["answer"]
        if type(row) is not int or word not in READ:
            raise ValueError(word)
        return session.answer(tab(asked), row - 1, word)

    def more(asked: Any) -> dict[str, Any]:
        if type(asked["n"]) is not int or not 1 <= asked["n"] <= _MOST_MORE:
            raise ValueError(asked["n"])
        return session.more(tab(asked), asked["n"])

    routes = [Route("/", page("label.html"))]
    routes += [Route(f"/{name}", page(name)) for name in ("label.js", "label.css")]
    for name, work in {
        "about": lambda _: about,
        "row": lambda asked: session.view(tab(asked)),
        "estimate": lambda _: session.estimate(),
    }.items():
        routes.append(Route(f"/api/{name}", api(work)))
    for name, change in {
        "answer": answer,
        "undo": lambda asked: session.undo(tab(asked)),
        "more": more,
    }.items():
        routes.append(Route(f"/api/{name}", api(change), methods=["POST"]))
    return Guard(Starlette(routes=routes), token, port, network=network)


async def _read_body(request: Any) -> dict[str, Any] | None:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LONGEST_BODY:
            return None
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) else None


def serve(app: Guard, sock: socket.socket, address: str, *, browse: bool) -> None:
    """Serve until interrupted."""
    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if browse:  # a browser may take its time to start
                threading.Thread(
                    target=webbrowser.open, args=(address,), daemon=True
                ).start()

    config = uvicorn.Config(
        app, log_level="error", access_log=False, server_header=False, lifespan="off"
    )
    config.timeout_graceful_shutdown = 2
    Server(config).run(sockets=[sock])
