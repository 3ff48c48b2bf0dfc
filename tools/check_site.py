"""Check a built site: links work, every public name has a page, nothing is loaded from elsewhere.

python tools/check_site.py build/docs
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

STYLE_LOADS = re.compile(r"""(?:url\(|@import )\s*["']?([^"')\s]+)""")


class Page(HTMLParser):
    """The anchors, the links and the resources of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "id" in found:
            self.anchors.add(found["id"])
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and found.get("rel") not in ("canonical",) and "href" in found:
            self.resources.append(found["href"])
        if "src" in found:
            self.resources.append(found["src"])


def is_outside(address: str) -> bool:
    """Whether an address is that of another machine."""
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data", "mailto")


def built(site: Path) -> list[Path]:
    """The pages of a site; the theme has templates among its own files."""
    return [path for path in site.rglob("*.html") if "_static" not in path.parts]


def problems(site: Path, names: dict[str, str]) -> list[str]:
    """What is wrong with a site, one line each.

    Args:
        site: The folder of the site.
        names: For each public name, its address in the folder `api`.
    """
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in built(site)}
    files = {path.resolve() for path in site.rglob("*") if path.is_file()}
    anchors = {path.resolve(): page.anchors for path, page in pages.items()}
    found = []
    for path, page in pages.items():
        where = path.relative_to(site)
        found += [f"{where}: loads {r}" for r in page.resources if is_outside(r)]
        for address in {*page.links, *(r for r in page.resources if not is_outside(r))}:
            target, anchor = urldefrag(address)
            if is_outside(address) or address.startswith(("data:", "mailto:")):
                continue
            file = (
                (path.parent / unquote(urlsplit(target).path)).resolve()
                if target
                else path.resolve()
            )
            if file.is_dir():
                file /= "index.html"
            if file not in files:
                found.append(f"{where}: {address} leads nowhere")
            elif anchor and file in anchors and unquote(anchor) not in anchors[file]:
                found.append(f"{where}: {address} has no such anchor")
    for path in site.rglob("*.css"):
        for address in STYLE_LOADS.findall(path.read_text(encoding="utf-8")):
            if is_outside(address):
                found.append(f"{path.relative_to(site)}: loads {address}")
    for name, address in names.items():
        target, anchor = urldefrag(address)
        file = (site / "api" / target).resolve()
        if file not in files or (anchor and anchor not in anchors[file]):
            found.append(f"{name} is missing from the reference")
    return sorted(found)


def main(site: Path) -> int:
    from reference import addresses

    found = problems(site, addresses())
    print(*found[:50], sep="\n")
    if len(found) > 50:
        print(f"… and {len(found) - 50} more")
    print(f"{len(built(site))} pages, {len(addresses())} public names, {len(found)} problems")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
