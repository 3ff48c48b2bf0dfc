"""The public names of namoo, and the pages of the API reference, as Markdown.

Names are found by importing the namespaces, because many functions are made by other functions and
cannot be read from the source. Docstrings are in Google style; griffe parses them.

    python tools/reference.py docs/api      write the pages
"""

import ast
import importlib
import inspect
import keyword
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

# The namespaces with their headings, in the order of the table of contents.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Transformations and trees": (
        "namoo",
        "namoo.tree",
        "namoo.tree_util",
        "namoo.ref",
        "namoo.struct",
        "namoo.flatten_util",
        "namoo.custom_derivatives",
        "namoo.custom_batching",
        "namoo.ad",
        "namoo.ad_checkpoint",
    ),
    "Arrays and operations": (
        "namoo.numpy",
        "namoo.numpy.linalg",
        "namoo.numpy.fft",
        "namoo.lax",
        "namoo.lax.linalg",
        "namoo.random",
        "namoo.ops",
        "namoo.image",
        "namoo.dtypes",
        "namoo.dlpack",
        "namoo.typing",
    ),
    "Models and training": (
        "namoo.nn",
        "namoo.nn.initializers",
        "namoo.optim",
        "namoo.optim.losses",
        "namoo.optim.transforms",
        "namoo.optim.tree",
        "namoo.optim.tree_utils",
        "namoo.data",
        "namoo.train",
        "namoo.checkpoints",
        "namoo.mixed",
    ),
    "Science": (
        "namoo.scipy.cluster.vq",
        "namoo.scipy.fft",
        "namoo.scipy.integrate",
        "namoo.scipy.interpolate",
        "namoo.scipy.linalg",
        "namoo.scipy.ndimage",
        "namoo.scipy.optimize",
        "namoo.scipy.signal",
        "namoo.scipy.sparse.linalg",
        "namoo.scipy.spatial.transform",
        "namoo.scipy.special",
        "namoo.scipy.stats",
        *(
            f"namoo.scipy.stats.{name}"
            for name in (
                "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom "
                "gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm "
                "pareto poisson t truncnorm uniform vonmises wrapcauchy"
            ).split()
        ),
    ),
    "Devices": (
        "namoo.sharding",
        "namoo.distributed",
    ),
    "Programs": (
        "namoo.stages",
        "namoo.export",
        "namoo.ffi",
        "namoo.debug",
        "namoo.errors",
        "namoo.profiler",
        "namoo.monitoring",
        "namoo.test_util",
        "namoo.api_util",
        "namoo.core",
        "namoo.extend.backend",
        "namoo.extend.core",
        "namoo.extend.core.primitives",
        "namoo.extend.linear_util",
        "namoo.extend.source_info_util",
        "namoo.interpreters.ad",
        "namoo.interpreters.batching",
        "namoo.interpreters.mlir",
        "namoo.interpreters.partial_eval",
        "namoo.interpreters.pxla",
        "namoo.interpreters.xla",
    ),
    "Experimental, and JAX's other modules": (
        "namoo.experimental",
        "namoo.experimental.checkify",
        "namoo.experimental.jet",
        "namoo.experimental.layout",
        "namoo.experimental.mesh_utils",
        "namoo.experimental.multihost_utils",
        "namoo.experimental.ode",
        "namoo.experimental.pjit",
        "namoo.experimental.shard_map",
        "namoo.experimental.sparse",
        "namoo.example_libraries.optimizers",
        "namoo.example_libraries.stax",
        "namoo.compat",
    ),
}

NAMESPACES = tuple(name for names in SECTIONS.values() for name in names)


@cache
def public_names(namespace: str) -> dict[str, Any]:
    """The public names of a namespace with their values, without modules."""
    module = importlib.import_module(namespace)
    found = {
        name: getattr(module, name)
        for name in sorted(dir(module), key=lambda name: (name.lower(), name))
        if not name.startswith("_")
    }
    return {name: thing for name, thing in found.items() if not isinstance(thing, ModuleType)}


def has_page(thing: Any) -> bool:
    """Functions and classes have a page each; values are listed on the page of their namespace."""
    return callable(thing) and (inspect.isclass(thing) or inspect.getdoc(thing) is not None)


@cache
def addresses() -> dict[str, str]:
    """For each full public name, its page in the folder of the reference, with the anchor."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for namespace in NAMESPACES:
        found[namespace] = f"{namespace}.html"
        taken.add(f"{namespace}.html".lower())
    for namespace in NAMESPACES:
        for name, thing in public_names(namespace).items():
            full = f"{namespace}.{name}"
            if has_page(thing):
                page = f"{full}.html"
                if page.lower() in taken:  # names that differ by case only, or are modules, too
                    page = f"{full}-name.html"
                taken.add(page.lower())
                found.setdefault(full, f"{page}#{full}")
            else:
                found.setdefault(full, f"{namespace}.html#{full}")
    return found


def summary(thing: Any) -> str:
    """The first sentence of a docstring, for a table."""
    text = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    first = re.split(r"(?<=\.)\s", text, maxsplit=1)[0].removesuffix(":")
    return first.replace("|", "\\|")


def _default(value: Any) -> str:
    text = repr(value)
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return getattr(value, "__name__", "...")
    return text if len(text) < 60 else "..."


def signature(thing: Any, method: bool = False) -> str:
    """The arguments of a function as text, without annotations: the text below describes them."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    parameters = list(found.parameters.values())[int(method) :]
    words, kinds = [], [p.kind for p in parameters]
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and (not i or kinds[i - 1] < p.VAR_POSITIONAL):
            words.append("*")
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        name = p.name + "_" if keyword.iskeyword(p.name) else p.name
        words.append(star + name + ("" if p.default is p.empty else f"={_default(p.default)}"))
        if p.kind is p.POSITIONAL_ONLY and kinds[i + 1 : i + 2] != [p.POSITIONAL_ONLY]:
            words.append("/")
    return f"({', '.join(words)})"


def fenced(text: str) -> str:
    """Put the examples of a text, which are interactive sessions, into code blocks."""
    return re.sub(
        r"^>>> .*(?:\n.+)*(?:\n\n>>> .*(?:\n.+)*)*", r"```pycon\n\g<0>\n```", text, flags=re.M
    )


def description(thing: Any) -> str:
    """A docstring as Markdown."""
    import griffe  # pyright: ignore[reportMissingImports]

    text = inspect.getdoc(thing)
    if not text:
        return ""
    lines = []
    options = {"warnings": False, "returns_named_value": False, "returns_multiple_items": False}
    for section in griffe.Docstring(text).parse("google", **options):
        title = (section.title or section.kind.value).capitalize()
        match section.kind.value:
            case "text":
                lines += [fenced(section.value), ""]
            case "examples":
                lines += ["**Example**", ""]
                lines += [*(fenced(part) for _, part in section.value), ""]
            case "admonition":
                lines += [f"**{title}**", "", fenced(section.value.contents), ""]
            case "returns" | "yields":
                lines += [f"**{title}**", "", *(item.description for item in section.value), ""]
            case _:
                lines += [f"**{title}**", ""]
                for item in section.value:
                    name = getattr(item, "name", None) or getattr(item, "annotation", "")
                    told = item.description.replace("\n", "\n  ")
                    lines.append(f"- `{name}`: {told}")
                lines.append("")
    return "\n".join(lines)


def _block(kind: str, heading: str, *contents: str) -> str:
    colons = ":" * (4 if kind == "class" else 3)
    body = "\n".join(contents)
    return f"{colons}{{py:{kind}}} {heading}\n\n{body}\n{colons}\n"


def _members(full: str, cls: type) -> list[str]:
    blocks = []
    for name, member in vars(cls).items():
        value = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not inspect.getdoc(value):
            continue
        if inspect.isfunction(value):
            bound = not isinstance(member, staticmethod)
            head = f"{full}.{name}{signature(value, method=bound)}"
            blocks.append(_block("method", head, description(value)))
        elif isinstance(value, property):
            blocks.append(_block("property", f"{full}.{name}", description(value)))
    return blocks


def page(namespace: str, name: str, thing: Any) -> str:
    """The page of one function or class."""
    full = f"{namespace}.{name}"
    if inspect.isclass(thing):
        block = _block("class", full + signature(thing), description(thing), *_members(full, thing))
    else:
        block = _block("function", full + signature(thing), description(thing))
    return f"---\norphan: true\n---\n\n# {name}\n\n[`{namespace}`]({namespace}.md)\n\n{block}"


def namespace_page(namespace: str) -> str:
    """The page of a namespace: what it is for, and a table of its names."""
    module = importlib.import_module(namespace)
    lines = [f"# {namespace}", "", description(module), ""]
    paged, values = [], []
    for name, thing in public_names(namespace).items():
        (paged if has_page(thing) else values).append((name, thing))
    if paged:
        lines += ["| name | what it is |", "|---|---|"]
        for name, thing in paged:
            target = addresses()[f"{namespace}.{name}"].partition(".html")[0]
            lines.append(f"| [`{name}`]({target}.md) | {summary(thing)} |")
        lines.append("")
    if values:
        lines += ["## Values", ""]
        for name, thing in values:
            told = f"A value of type `{type(thing).__name__}`."
            lines.append(_block("data", f"{namespace}.{name}", told))
    return "\n".join(lines)


def contents_page() -> str:
    """The page that lists the namespaces."""
    count = sum(len(public_names(namespace)) for namespace in NAMESPACES)
    lines = [
        "# API",
        "",
        f"{count:,} public names in {len(NAMESPACES)} namespaces, each with what it takes, what it "
        "returns and, for functions, an example that runs as a test.",
        "",
    ]
    for section, names in SECTIONS.items():
        lines += [f"## {section}", "", "| namespace | what is there |", "|---|---|"]
        for name in names:
            text = summary(importlib.import_module(name)).removeprefix(f"`{name}`: ")
            lines.append(f"| [`{name}`]({name}.md) | {text[:1].upper()}{text[1:]} |")
        lines += ["", "```{toctree}", ":hidden:", f":caption: {section}", ""]
        lines += [*names, "```", ""]
    return "\n".join(lines)


def settings_page() -> str:
    """The page of the settings, from their register."""
    from namoo._base.config import OPTIONS

    lines = [
        "# Settings and environment variables",
        "",
        "Set one with `namoo.config.update(name, value)` or by its environment variable. JAX's "
        "names (`jax_enable_x64`, `JAX_ENABLE_X64`) work, too. *Programs* says whether functions "
        "are traced again when the setting changes.",
        "",
        "| setting | environment | default | programs | effect |",
        "|---|---|---|---|---|",
    ]
    for option in sorted(OPTIONS, key=lambda option: option.name):
        told = option.doc.replace("|", "\\|")
        lines.append(
            f"| `{option.name}` | `NAMOO_{option.name.upper()}` | `{option.default!r}` "
            f"| {'yes' if option.traced else ''} | {told} |"
        )
    return "\n".join([*lines, ""])


def pages() -> dict[str, str]:
    """All pages of the reference: the name of the file, and its text."""
    found = {"index.md": contents_page(), "settings.md": settings_page()}
    for namespace in NAMESPACES:
        found[f"{namespace}.md"] = namespace_page(namespace)
        for name, thing in public_names(namespace).items():
            if has_page(thing):
                target = addresses()[f"{namespace}.{name}"].partition(".html")[0]
                found[f"{target}.md"] = page(namespace, name, thing)
    return found


def write(folder: Path) -> None:
    """Write the pages that have changed, and remove those that no longer exist."""
    folder.mkdir(exist_ok=True)
    current = pages()
    for path in folder.glob("*.md"):
        if path.name not in current:
            path.unlink()
    for name, text in current.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
