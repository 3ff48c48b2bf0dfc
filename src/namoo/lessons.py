"""`python -m namoo.lessons [ko]`: serve the lessons from this machine, to run them in a browser.

The pages are those that `make docs` builds. They load nothing from elsewhere, so they work offline.
"""

from __future__ import annotations

import argparse
import functools
import sys
import webbrowser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# Where `make docs` of a checkout puts the site; the package has the lessons' data, not their pages.
BUILT = Path(__file__).parents[2] / "build" / "docs"

MISSING = """\
There are no lessons in {folder}. They are built from a clone of the repository:

    make docs
    python -m namoo.lessons --folder build/docs

A site that is already built, on this machine or unpacked from elsewhere, is served by its folder:
python -m namoo.lessons --folder FOLDER."""


class _Pages(SimpleHTTPRequestHandler):
    """Files, with the headers that let a page interrupt its Python and keep the names."""

    def end_headers(self) -> None:
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for each file."""


def server(folder: Path, port: int = 0) -> ThreadingHTTPServer:
    """Make a server of the lessons for this machine only.

    Args:
        folder: the built site.
        port: where to listen; 0 takes a free one.

    Raises:
        FileNotFoundError: if the folder has no lessons. The message says how to build them.
    """
    if not (folder / "lessons" / "index.html").exists():
        raise FileNotFoundError(MISSING.format(folder=folder))
    handler = functools.partial(_Pages, directory=str(folder))
    return ThreadingHTTPServer(("127.0.0.1", port), handler)


def main(arguments: list[str]) -> int:
    """Serve the lessons until Ctrl-C."""
    parser = argparse.ArgumentParser("python -m namoo.lessons", description="Serve the lessons.")
    parser.add_argument("language", nargs="?", choices=("en", "ko"), default="en")
    parser.add_argument("--folder", type=Path, default=BUILT, help="the built site")
    parser.add_argument(
        "--port", type=int, default=0, help="where to listen; a free port if absent"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address only")
    options = parser.parse_args(arguments)
    try:
        made = server(options.folder, options.port)
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    start = "ko/lessons" if options.language == "ko" else "lessons"
    address = f"http://127.0.0.1:{made.server_port}/{start}/index.html"
    print(f"{address} (Ctrl-C ends it)", flush=True)
    if not options.no_browser:
        webbrowser.open(address)
    with made:
        try:
            made.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
