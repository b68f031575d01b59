"""The local server of ``probgap label``: one page, and nothing without its token."""

import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any

import typer

from probgap.cli._labelling import AnsweredError, LabelSession

_PAGES = {
    "/": ("cli/static/label.html", "text/html"),
    "/label.js": ("cli/static/label.js", "text/javascript"),
    "/style.css": ("_core/style.css", "text/css"),
    "/label.css": ("cli/static/label.css", "text/css"),
}
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


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address, where callers wait; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def is_local(host: str) -> bool:
    """Return whether only this machine reaches a host."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(
    session: LabelSession,
    about: dict[str, Any],
    sock: socket.socket,
    host: str,
    *,
    browse: bool,
) -> None:
    """Serve questions until interrupted."""
    import uvicorn

    token, port = secrets.token_urlsafe(24), sock.getsockname()[1]
    network = not is_local(host)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{port}/?token={token}"
    if network:
        typer.echo(
            "Warning: others on this network can reach the page if they have its address, "
            "and can read what is sent, rows and token: nothing is encrypted.",
            err=True,
        )
    typer.echo(
        f"Labelling at {address}\nPress Ctrl-C to end. Every answer is saved at once.",
        err=True,
    )
    if browse:  # a browser may take its time to start
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
    config = uvicorn.Config(
        make_app(session, about, Guard(token, port, network=network)),
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[sock])


class Guard:
    """Refuses requests without the token, for another host, or from another page.

    The token is in the address that was printed, and from then on in a cookie that no
    script can read. A page elsewhere could let its own name point to this machine (DNS
    rebinding), so that a host must be local unless the network is allowed. It could also
    send requests here by itself: they would come from another origin.
    """

    def __init__(self, token: str, port: int, *, network: bool) -> None:
        self._token, self._cookie = token, f"probgap_{port}"
        self._network = network

    async def __call__(self, request: Any, respond: Callable[[Any], Any]) -> Any:
        """Answer a request, or refuse it."""
        from starlette.responses import PlainTextResponse

        shown = request.url.path == "/" and request.query_params.get("token", "")
        token = shown or request.cookies.get(self._cookie, "")
        refusal = ""
        if not (self._network or is_local(request.url.hostname or "")):
            refusal = "This host is not served here."
        elif not _is_own_page(request):
            refusal = "This page may not ask here."
        elif not secrets.compare_digest(token.encode(), self._token.encode()):
            refusal = "Open the address that probgap label printed: it holds a token."
        response = (
            PlainTextResponse(refusal, 403) if refusal else await respond(request)
        )
        if shown and not refusal:
            strict: Any = {"httponly": True, "samesite": "strict"}
            response.set_cookie(self._cookie, token, **strict)
        response.headers.update(_HEADERS)
        return response


def _is_own_page(request: Any) -> bool:
    """Return whether our page asks, or a person who opens it."""
    origin = f"http://{request.headers.get('host')}"
    origins = request.headers.getlist("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    if any(each != origin for each in origins):
        return False
    if request.method == "POST":
        return bool(origins) and site == "same-origin"
    # A link elsewhere may lead to the page, whose address then holds the token.
    return site in ("same-origin", "none") or request.url.path == "/"


def make_app(session: LabelSession, about: dict[str, Any], guard: Guard) -> Any:
    """Return the application: a page, and answers to what its script asks."""
    from starlette.applications import Starlette
    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import JSONResponse

    def misunderstood(*_: Any) -> Any:
        return JSONResponse({"error": "This was not understood."}, 400)

    def answered(request: Any, error: Exception) -> Any:
        return JSONResponse({"error": str(error), **session.view(_tab(request))}, 409)

    def unsaved(_: Any, error: Any) -> Any:
        said = f"The answer could not be saved: {error.strerror or error}."
        return JSONResponse({"error": said}, 507)

    return Starlette(
        routes=_make_routes(session, about),
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
        exception_handlers={
            KeyError: misunderstood,
            ValueError: misunderstood,
            AnsweredError: answered,
            OSError: unsaved,
        },
    )


def _make_routes(session: LabelSession, about: dict[str, Any]) -> list[Any]:
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    def page(path: str, name: str, kind: str) -> Any:
        content = files("probgap").joinpath(name).read_bytes()
        return Route(path, lambda _: Response(content, media_type=kind))

    def work(name: str, method: str, do: Callable[[str, Any], Any]) -> Any:
        def respond(request: Any) -> Any:
            return JSONResponse(do(_tab(request), request.query_params))

        return Route(f"/api/{name}", respond, methods=[method])

    def answer(by: str, said: Any) -> Any:
        return session.answer(by, int(said["row"]) - 1, said["answer"])

    return [
        *(page(path, *file) for path, file in _PAGES.items()),
        work("about", "GET", lambda *_: about),
        work("row", "GET", lambda by, _: session.view(by)),
        work("estimate", "GET", lambda *_: session.estimate()),
        work("answer", "POST", answer),
        work("undo", "POST", lambda by, _: session.undo(by)),
        work("more", "POST", lambda by, said: session.more(by, int(said["n"]))),
    ]


def _tab(request: Any) -> str:
    """Return who asks: a window of a browser."""
    return request.query_params.get("tab", "")[:40] or "?"
