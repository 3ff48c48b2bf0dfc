"""LLVM's options are the process's: ours hold while we compile, and for nobody else."""

import threading

import pytest

from namoo.engines.native.link import llvm

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
    with llvm.target_machine() as machine:
        return machine.emit_assembly(llvm.optimised(machine, TEXT))


def ours() -> str:
    return llvm.assembly(TEXT)


def test_the_options_matter():
    assert ours() != usual()


def fail_while_emitting():
    with llvm._with_options():
        raise RuntimeError


@pytest.mark.parametrize(
    ("run", "error"),
    [
        (ours, None),
        (lambda: llvm.object_file(TEXT), None),
        (lambda: llvm.object_files([TEXT] * 3), None),
        (lambda: llvm.object_file(FAILS), RuntimeError),
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
        with llvm._with_options():
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


@pytest.mark.parametrize("maker", ["create_pass_builder", "create_new_module_pass_manager"])
def test_a_machine_keeps_its_passes(monkeypatch, maker):
    # LLVM never frees all of them: a program that is compiled must not leave one behind.
    made = []
    create = getattr(llvm.llvm, maker)
    monkeypatch.setattr(llvm.llvm, maker, lambda *args: made.append(args) or create(*args))
    monkeypatch.setattr(llvm, "_idle", [])
    for _ in range(3):
        llvm.object_file(TEXT)
    assert len(made) == 1


def test_masked_operations_for_older_versions():
    text = """declare <4 x float> @llvm.masked.gather.f.p0(<4 x ptr>, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.f.p0(<4 x float>, ptr, <4 x i1>)
  %a = call <4 x float> @llvm.masked.gather.f.p0(<4 x ptr> align 4 %p, <4 x i1> %m, <4 x float> %z)
  call void @llvm.masked.store.f.p0(<4 x float> %a, ptr align 4 %q, <4 x i1> %m)
  store <4 x float> %a, ptr %q, align 4"""
    older = """declare <4 x float> @llvm.masked.gather.f.p0(<4 x ptr>, i32, <4 x i1>, <4 x float>)
declare void @llvm.masked.store.f.p0(<4 x float>, ptr, i32, <4 x i1>)
  %a = call <4 x float> @llvm.masked.gather.f.p0(<4 x ptr> %p, i32 4, <4 x i1> %m, <4 x float> %z)
  call void @llvm.masked.store.f.p0(<4 x float> %a, ptr %q, i32 4, <4 x i1> %m)
  store <4 x float> %a, ptr %q, align 4"""
    assert llvm._for_older_versions(text) == older
