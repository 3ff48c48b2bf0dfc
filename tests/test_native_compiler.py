"""LLVM's options are the process's: ours hold while we compile, and for nobody else."""

import threading

import pytest

from namoo.engines.native import compiler, link

# A loop whose address LLVM makes a pointer that steps, unless it is told not to.
TEXT = """
define float @total(ptr %x) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%n, %loop]
  %sum = phi float [0.0, %entry], [%more, %loop]
  %at = mul i64 %i, 1000
  %p = getelementptr float, ptr %x, i64 %at
  %one = load float, ptr %p
  %more = fadd float %sum, %one
  %n = add nuw nsw i64 %i, 1
  %left = icmp slt i64 %n, 4096
  br i1 %left, label %loop, label %out
out:
  ret float %more
}
"""
FAILS = "define void @broken() { this is no instruction }"


def usual() -> str:
    """The code that others in the process get."""
    with compiler.target_machine() as machine:
        return machine.emit_assembly(compiler.optimised(machine, TEXT, link.PASSES))


def ours() -> str:
    return compiler.assembly(TEXT, link.PASSES)


def test_the_options_matter():
    assert ours() != usual()


def fail_while_emitting():
    with compiler._with_options():
        raise RuntimeError


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (ours, None),
        (lambda: compiler.object_file(TEXT, link.PASSES), None),
        (lambda: compiler.object_files([TEXT] * 3, link.PASSES), None),
        (lambda: compiler.object_file(FAILS, link.PASSES), RuntimeError),
        (fail_while_emitting, RuntimeError),
    ],
)
def test_the_options_of_others_are_the_usual_ones_again(run, error):
    before = usual()
    if error is None:
        run()
    else:
        with pytest.raises(error):
            run()
    assert usual() == before


def test_the_options_hold_until_the_last_thread_is_done():
    before, inside, leave = usual(), threading.Event(), threading.Event()

    def wait():
        with compiler._with_options():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    inside.wait()
    expected = ours()
    assert usual() == expected != before
    leave.set()
    thread.join()
    assert usual() == before
