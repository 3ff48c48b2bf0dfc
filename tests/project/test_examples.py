"""What a user runs first: the import, the READMEs' examples, the demo and the other programs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*args) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, where a warning is an error, as a user would start it."""
    return subprocess.run(
        [sys.executable, "-W", "error", *args], capture_output=True, text=True, timeout=300
    )


# What each example prints with --short, and a bound that one that had learned nothing would miss.
EXAMPLES = {
    # Thirty steps of a network that had learned nothing would leave one digit in ten.
    "mnist_mlp": (r"test accuracy: ([\d.]+)%", lambda accuracy: accuracy > 70),
    "mnist_cnn": (r"test accuracy: ([\d.]+)%", lambda accuracy: accuracy > 60),
    "char_gpt": (r"validation loss: ([\d.]+)", lambda nats: nats < 3.1),  # log(63) is 4.1
    "per_example_grads": (r"noise 1: accuracy ([\d.]+)%", lambda accuracy: accuracy > 60),
    "vae": (r"test bound: ([\d.]+)", lambda nats: nats < 250),  # all pixels by chance: 543
    "meta_learning": (r"meta-.*error [\d.]+, ([\d.]+)", lambda error: error < 2),  # plain: 2.95
    "ode_fit": (r"error: ([\d.]+)", lambda error: error < 0.3),  # 0.51 before the first step
    "ppo_cartpole": (r"stands for (\d+)", lambda steps: steps > 100),  # untrained: 10
    "data_parallel": (r"largest difference: ([\d.]+)", lambda difference: difference < 1e-5),
    "lbfgs_fit": (r"L-BFGS: loss ([\d.]+)", lambda loss: loss < 0.25),  # by descent: 0.96
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_learns_and_draws(name, tmp_path):
    pattern, learned = EXAMPLES[name]
    picture = tmp_path / "new" / ("picture.png" if name == "vae" else "picture.svg")
    done = run(ROOT / "examples" / f"{name}.py", "--short", "--out", picture)
    assert done.returncode == 0, done.stderr
    found = re.search(pattern, done.stdout)
    assert found and learned(float(found[1])), done.stdout
    assert picture.read_bytes().startswith((b"<svg", b"\x89PNG"))


def test_training_over_many_processes_is_that_on_one_device(tmp_path):
    script = ROOT / "examples" / "data_parallel.py"
    command = "-m", "namoo.launch", "-n", "2", "--cpu-devices", "2", "--deadline", "250"
    done = run(*command, script, "--short", "--out", tmp_path / "picture.svg")
    assert done.returncode == 0, done.stderr
    assert "[0] 4 devices, 2 processes" in done.stdout
    found = re.search(r"largest difference: ([\d.]+)", done.stdout)
    assert found and float(found[1]) < 1e-5, done.stdout


def test_a_stopped_example_goes_on_as_if_it_had_not(tmp_path):
    command = ROOT / "examples" / "mnist_cnn.py", "--short", "--out", tmp_path / "picture.svg"
    whole = run(*command)
    shutil.rmtree(tmp_path / "mnist_cnn_40_steps" / "checkpoints" / "step-0000000040")
    resumed = run(*command)
    assert "resumed at step 20\n" in resumed.stdout, resumed.stderr
    # The last two lines: loss and accuracy of step 40, and the result.
    assert resumed.stdout.splitlines()[-2:] == whole.stdout.splitlines()[-2:]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_an_example_can_be_read_in_one_sitting(path):
    assert path.stem in EXAMPLES
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "pictures").glob("*.[ps]*g")), ids=str)
def test_a_picture_is_one_of_an_example_and_small(path):
    command = (path.parent / "README.md").read_text(encoding="utf-8")
    assert path.stem in EXAMPLES and re.search(rf"\b{path.stem}\b", command)
    assert path.stat().st_size < 100_000


READMES = ["README.md", "README.ko.md"]


def blocks(readme: str) -> list[str]:
    """The Python blocks of a README."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("readme", READMES)
def test_the_blocks_of_a_readme_print_what_they_say(readme):
    code = blocks(readme)
    for block in code:
        assert "#> " in block, f"a block of {readme} shows nothing that it prints:\n{block}"
    result = run("-c", "\n".join(code))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == re.findall(r"#> (.*)", "\n".join(code))


def test_both_readmes_show_the_same_programs():
    def programs(readme):
        return [[line.split("#")[0].rstrip() for line in b.splitlines()] for b in blocks(readme)]

    assert programs("README.md") == programs("README.ko.md")
    assert len(programs("README.md")) == 3


@pytest.mark.parametrize("readme", READMES)
def test_a_readme_is_short_and_its_links_lead_somewhere(readme):
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (ROOT / target).exists(), target


def test_importing_namoo_loads_nothing_heavy():
    heavy = {"scipy", "opt_einsum", "llvmlite", "jax", "jaxlib"}
    work = "import sys, namoo.numpy as jnp; jnp.zeros(3) + 1"
    found = run("-c", f"{work}; print(*{{name.split('.')[0] for name in sys.modules}})")
    assert found.returncode == 0, found.stderr
    assert "numpy" in found.stdout.split()
    assert not heavy & set(found.stdout.split())
