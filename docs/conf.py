"""The documentation site, which `make docs` builds: English from docs/, Korean from docs/ko/."""

import json
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.search import SearchLanguage
from sphinx.transforms.post_transforms import SphinxPostTransform

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import cells  # noqa: E402
from korean_search import words  # noqa: E402
from reference import addresses  # noqa: E402

project = "namoo"
language = "en"
extensions = ["myst_parser", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["ko", "README.md", "pictures/README.md", "_templates", "_static", "browser"]
templates_path = ["_templates"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
python_maximum_signature_line_length = 88
toc_object_entries = False
highlight_language = "python"
pygments_style = "friendly"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css", "cells.css"]
html_show_sourcelink = False
html_copy_source = False
html_title = "namoo"
html_theme_options = {
    "logo": {"text": "namoo 나무"},
    "navbar_end": ["language", "theme-switcher"],
    "header_links_before_dropdown": 8,
    "secondary_sidebar_items": ["page-toc", "notebook"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "pygments_light_style": "friendly",
    "pygments_dark_style": "github-dark",
}
project_copyright = "namoo, Apache-2.0"
# The tables of the reference would only repeat the list of names at their side.
html_sidebars = {
    **dict.fromkeys(("index", "playground", "gallery", "faq"), []),
    "api/*": ["sidebar-nav-bs"],
}

# How programs abbreviate namespaces.
ABBREVIATIONS = {
    "jax": "namoo",
    "jnp": "namoo.numpy",
    "lax": "namoo.lax",
    "nn": "namoo.nn",
    "optim": "namoo.optim",
    "optax": "namoo.optim",
    "train": "namoo.train",
    "data": "namoo.data",
    "checkpoints": "namoo.checkpoints",
    "mixed": "namoo.mixed",
    "random": "namoo.random",
    "struct": "namoo.struct",
    "tree": "namoo.tree",
    "debug": "namoo.debug",
}


class LinkNames(SphinxPostTransform):
    """Make every public name in code type, such as `jax.grad`, a link to its page."""

    default_priority = 400

    def run(self, **kwargs):
        docname = self.env.docname
        up = "../" * (docname.count("/") + (self.config.language == "ko"))
        here = docname.removeprefix("api/") if docname.startswith("api/") else ""
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, nodes.reference | nodes.title):
                continue
            address = find(literal.astext(), here)
            if address and address.partition(".html")[0] != here:
                link = nodes.reference("", "", internal=True, refuri=f"{up}api/{address}")
                literal.replace_self(link)
                link += literal


def find(text, here):
    """Return the address of the name that a piece of code is, if it is one."""
    name = text.removesuffix("()")
    first, dot, rest = name.partition(".")
    full = f"{ABBREVIATIONS.get(first, first)}.{rest}" if dot else name
    if not dot and here:  # in the reference, names of the same namespace need no prefix
        for namespace in (here, here.rpartition(".")[0], "namoo"):
            if f"{namespace}.{name}" in addresses():
                return addresses()[f"{namespace}.{name}"]
    return addresses().get(full) if full.startswith("namoo") and full != "namoo" else None


def other_language(app, pagename, templatename, context, doctree):
    """Tell the template where the page is in the other language, and where its notebook is."""
    korean = app.config.language == "ko"
    up = "../" * pagename.count("/")
    other = ROOT / "docs" / ("" if korean else "ko") / f"{pagename}.md"
    page = pagename if other.exists() else "index"
    context["other_language_url"] = f"{up}../{page}.html" if korean else f"{up}ko/{page}.html"
    context["other_language_name"] = "English" if korean else "한국어"
    context["other_language"] = "en" if korean else "ko"
    context["notebook_url"] = None
    if pagename.startswith("lessons/") and pagename != "lessons/index":
        root = up + ("../" if korean else "")
        folder = "ko" if korean else "en"
        context["notebook_url"] = f"{root}notebooks/{folder}/{os.path.basename(pagename)}.ipynb"


# The lessons that do not run in a browser, with what they need.
NEEDS = {"12_sharding": "xla"}


def add_cells(app, pagename, templatename, context, doctree):
    """Give lessons and the playground their cells, as data, and the script that runs them."""
    folder, _, name = pagename.rpartition("/")
    if pagename == "lessons/index":
        script = "overview"
    elif folder == "lessons":
        script = "lesson"
    elif pagename == "playground":
        script = "playground"
    else:
        return
    page = {
        "lesson": name,
        "needs": NEEDS.get(name),
        "notebook": context["notebook_url"],
        "cells": [
            {"kind": cell.kind, "code": cell.code, "output": cell.output}
            for cell in cells.read(Path(app.env.doc2path(pagename)))
            if cell.kind != "text"
        ],
    }
    root = "../" * (pagename.count("/") + (app.config.language == "ko"))
    data = json.dumps(page, ensure_ascii=False).replace("</", "<\\/")
    context["body"] += (
        f'<script type="application/json" id="namoo-cells">{data}</script>'
        f'<script type="module" src="{root}browser/{script}.js"></script>'
    )


# Pages of the repository that are pages of the site, too.
REPOSITORY_PAGES = {
    "contribute/contributing": "CONTRIBUTING.md",
    "contribute/changelog": "CHANGELOG.md",
}


def read_repository_page(app, docname, source):
    """Take the text of a page from the repository, with links as the site has them."""
    if docname in REPOSITORY_PAGES:
        text = (ROOT / REPOSITORY_PAGES[docname]).read_text(encoding="utf-8")
        for site, repository in REPOSITORY_PAGES.items():
            text = text.replace(f"]({repository})", f"]({Path(site).name}.md)")
        source[0] = text.replace("](docs/", "](../")


def link_english_pages(app, docname, source):
    """Let Korean pages link to English ones, which are another build's."""
    folder = (app.srcdir / docname).parent

    def link(found):
        text, target = found[1], found[2]
        if (folder / target).resolve().is_relative_to(app.srcdir.resolve()):
            return found[0]
        return f'<a href="{target}.html">{text}</a>'

    source[0] = re.sub(r"\[([^]]*)\]\(([./]*[\w./-]+)\.md\)", link, source[0])


# The words of the theme, which it does not know in Korean.
KOREAN_WORDS = {
    "Back to top": "맨 위로",
    "Collapse Sidebar": "사이드바 접기",
    "Expand Sidebar": "사이드바 펼치기",
    "More": "더 보기",
    "On this page": "이 페이지의 내용",
    "Section Navigation": "목차",
    "Skip to main content": "본문으로 건너뛰기",
    "next": "다음",
    "previous": "이전",
}


class Korean(SearchLanguage):
    """Sphinx has no Korean among the languages of its search."""

    lang = "ko"
    language_name = "Korean"
    stopwords = set()

    def split(self, input):
        return words(input)

    def word_filter(self, stemmed_word):
        return len(stemmed_word) > 1


def translate_theme(app):
    """Translate the words of the theme."""
    environment = app.builder.templates.environment
    known = environment.globals["gettext"]
    environment.install_gettext_callables(
        lambda text: KOREAN_WORDS.get(text) or known(text),
        environment.globals["ngettext"],
    )


def setup(app):
    app.connect("source-read", read_repository_page)
    app.add_post_transform(LinkNames)
    app.connect("html-page-context", other_language)
    app.connect("html-page-context", add_cells)
    if app.srcdir.name == "ko":
        app.connect("source-read", link_english_pages)
        app.connect("builder-inited", translate_theme)
        app.add_search_language(Korean)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
