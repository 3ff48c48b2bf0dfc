"""What a user starts first: the import, the README's example, the demo."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*args) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, where a warning is an error, as a user would start it."""
    return subprocess.run(
        [sys.executable, "-W", "error", *args], capture_output=True, text=True, timeout=300
    )


def test_the_demo_learns():
    demo = run(ROOT / "examples" / "mnist_mlp.py", "--short")
    assert demo.returncode == 0, demo.stderr
    found = re.search(r"test accuracy: ([\d.]+)%", demo.stdout)
    assert found, demo.stdout
    # Thirty steps of a network that had learned nothing would leave one digit in ten.
    assert float(found[1]) > 70


def first_example(readme: str) -> tuple[str, str]:
    """The first Python block of a README, and what the comments `#> ...` say that it prints."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found, f"{readme} has no Python block"
    printed = re.findall(r"#> (.*)", found[1])
    assert printed, f"the first example of {readme} shows nothing that it prints"
    return found[1], "\n".join(printed) + "\n"


@pytest.mark.parametrize("readme", ["README.md", "README.ko.md"])
def test_the_first_example_prints_what_it_says(readme):
    code, printed = first_example(readme)
    result = run("-c", code)
    assert result.returncode == 0, result.stderr
    assert result.stdout == printed


def test_both_readmes_show_the_same_program():
    def program(readme):
        return [line.split("#")[0].rstrip() for line in first_example(readme)[0].splitlines()]

    assert program("README.md") == program("README.ko.md")


def test_importing_namoo_loads_nothing_heavy():
    heavy = {"scipy", "opt_einsum", "llvmlite", "jax", "jaxlib"}
    work = "import sys, namoo.numpy as jnp; jnp.zeros(3) + 1"
    found = run("-c", f"{work}; print(*{{name.split('.')[0] for name in sys.modules}})")
    assert found.returncode == 0, found.stderr
    assert "numpy" in found.stdout.split()
    assert not heavy & set(found.stdout.split())
