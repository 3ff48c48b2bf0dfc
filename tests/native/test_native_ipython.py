"""Ctrl-C in IPython stops a compiled loop, and the session goes on."""

import os
import sys
import time

import pytest

pexpect = pytest.importorskip("pexpect")
pytest.importorskip("IPython")

LIMIT = 120

# The first call compiles the loop and ends at once; the second one never ends.
CELLS = [
    "import namoo, namoo.numpy as jnp",
    "step = lambda c: (c[0] * 1, c[1] + 1)",
    "spin = namoo.jit(lambda x: namoo.lax.while_loop(lambda c: c[0] > 0, step, (x, 0)))",
    "spin(0)[1]",
]


def test_ctrl_c(tmp_path):
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
