"""Serves the built site on this machine."""

import contextlib
import functools
from collections.abc import Callable
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bookbuilder.paths import UserError


def serve(site: Path, port: int, say: Callable[[str], None]) -> None:
    """Serve a site on loopback only until Ctrl-C, and say when it begins and ends; UserError where it cannot."""
    if not (site / "index.html").is_file():
        raise UserError("there is no site yet: run `make site` first")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    try:
        server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise UserError(
            f"port {port} cannot be used ({error.strerror}); try another: derived serve --port {port + 1}"
        ) from None
    with server, contextlib.suppress(KeyboardInterrupt):
        say(f"serving on http://127.0.0.1:{port}/  (Ctrl-C stops it)")
        server.serve_forever()
    say("stopped")
