"""Ctrl-C in IPython and in a Jupyter kernel stops a compiled loop, and the session goes on."""

import functools
import os
import sys
import time

import pytest

pytest.importorskip("IPython")

LIMIT = 120

# The first call compiles the loop and ends at once; the second one never ends.
CELLS = [
    "import namoo, namoo.numpy as jnp",
    "step = lambda c: (c[0] * 1, c[1] + 1)",
    "spin = namoo.jit(lambda x: namoo.lax.while_loop(lambda c: c[0] > 0, step, (x, 0)))",
    "spin(0)[1]",
]


def test_ctrl_c_in_the_terminal(tmp_path):
    pexpect = pytest.importorskip("pexpect")
    options = ["--simple-prompt", "--no-banner", "--no-confirm-exit", "--colors=NoColor"]
    shell = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", *options, "--HistoryManager.enabled=False"],
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "TERM": "dumb"},
        encoding="utf-8",
        timeout=LIMIT,
        dimensions=(50, 200),
    )
    try:
        for number, cell in enumerate(CELLS, 1):
            shell.expect_exact(f"In [{number}]: ")
            shell.sendline(cell)
        shell.expect_exact("In [5]: ")
        shell.sendline("print('be' + 'gins'); spin(1)")
        shell.expect_exact("begins")
        time.sleep(0.5)
        shell.sendintr()
        shell.expect_exact("In [6]: ")
        assert "KeyboardInterrupt" in shell.before
        assert "spin(1)" in shell.before and "while_loop" in shell.before
        shell.sendline("print(jnp.arange(3) + spin(0)[1])")
        shell.expect_exact("[0 1 2]")
        shell.sendline("exit")
        shell.expect(pexpect.EOF)
    finally:
        shell.close(force=True)


LOOP = "lambda n, x: namoo.lax.fori_loop(0, n, lambda i, x: jnp.sin(x), x)"
SUM = "lambda x: jnp.sin(x[:, None, None, None] + x[:, None, None] * x[:, None] + x).sum()"
SETUP = [
    *CELLS,
    f"loop, total, x = namoo.jit({LOOP}), namoo.jit({SUM}), jnp.ones(1000)",
    "total.lower(x).compile()",
]
ENDLESS = {
    "while_loop": "spin(1)",
    "eager while_loop": "namoo.lax.while_loop(lambda c: c[0] > 0, step, (1, 0))",
    "fori_loop": "loop(2**31 - 1, x)",
    "kernel": "total(x)",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("ipykernel")
    manager = pytest.importorskip("jupyter_client").KernelManager()
    folder = str(tmp_path_factory.mktemp("ipython"))
    manager.start_kernel(env={**os.environ, "IPYTHONDIR": folder})
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(timeout=LIMIT)
    run = functools.partial(run_cell, manager, client)
    assert "Error" not in run("\n".join(SETUP))
    yield run
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run_cell(manager, client, code):
    """Run a cell, and interrupt it if it says that it begins; return all that it prints."""
    number, texts = client.execute(code), []
    while True:
        message = client.get_iopub_msg(timeout=LIMIT)
        if message["parent_header"].get("msg_id") != number:
            continue
        content = message["content"]
        texts += [content["text"]] if "text" in content else content.get("traceback", [])
        if texts[-1:] == ["begins\n"] and message["msg_type"] == "stream":
            time.sleep(0.5)
            manager.interrupt_kernel()
        if content.get("execution_state") == "idle":
            return "".join(texts)


@pytest.mark.parametrize("name", ENDLESS)
def test_interrupt_of_a_jupyter_kernel(run, name):
    printed = run(f"print('begins', flush=True)\n{ENDLESS[name]}")
    assert "KeyboardInterrupt" in printed
    after = "print(jnp.arange(3) + spin(0)[1], loop(1, x)[0] == jnp.sin(1.0))"
    assert run(after) == "[0 1 2] True\n"
