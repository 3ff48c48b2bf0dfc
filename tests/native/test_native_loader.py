"""Code loaded without LLVM does what it does when LLVM's own linker loads it."""

import ctypes
import gc
import os
import platform
import subprocess
import sys

import llvmlite.binding as llvm
import pytest

import relocations
from namoo.engines.native.link import llvm as compiler
from namoo.engines.native.link.loader import Image, Unsupported

pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"),
    reason="elsewhere LLVM's own linker loads code",
)

# Constants, memory with and without first values, functions of the process, of the caller, of the
# file itself: all that code refers to by address.
TEXT = """
@table = private constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 64
@count = internal global i64 7
@zeros = internal global [100 x i64] zeroinitializer, align 64
@where = internal global ptr @table

declare double @sqrt(double)
declare i64 @given(i64)

define i64 @double(i64 %x) noinline {
  %y = add i64 %x, %x
  ret i64 %y
}

define i64 @entry(i64 %i) {
  %table = load ptr, ptr @where
  %at = getelementptr i64, ptr %table, i64 %i
  %x = load i64, ptr %at
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %slot = getelementptr i64, ptr @zeros, i64 %i
  %before = load i64, ptr %slot
  store i64 1000, ptr %slot
  %d = call i64 @double(i64 %x)
  %g = call i64 @given(i64 %d)
  %f = uitofp i64 %g to double
  %r = call double @sqrt(double %f)
  %s = fptoui double %r to i64
  %a = add i64 %s, %old
  %b = add i64 %a, %before
  ret i64 %b
}
"""
NUMBER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)


@NUMBER
def given(x):
    return x * x


GIVEN = {"given": ctypes.cast(given, ctypes.c_void_p).value or 0}


def object_file(text):
    return compiler.object_file(text)


def with_small_addresses(text):
    target = llvm.Target.from_default_triple().create_target_machine(codemodel="small")
    return target.emit_object(llvm.parse_assembly(text))


@pytest.fixture(scope="module")
def data():
    return object_file(TEXT)


def test_it_computes_what_the_linker_of_llvm_makes_it_compute(data):
    image = Image(data, GIVEN)
    entry = NUMBER(image.addresses["entry"])
    library = compiler.Library(data, ["entry"], GIVEN)
    expected = NUMBER(library.addresses["entry"])
    indices = [0, 3, 3, 1, 0]
    assert [entry(i) for i in indices] == [expected(i) for i in indices]
    assert [entry(2), entry(2)] == [60 + 12, 60 + 13 + 1000]
    assert set(image.addresses) == {"double", "entry"}


def test_images_have_memory_of_their_own(data):
    first, second = Image(data, GIVEN), Image(data, GIVEN)
    one, other = (NUMBER(i.addresses["entry"]) for i in (first, second))
    assert [one(0), one(0), other(0)] == [27, 1028, 27]


def test_code_cannot_be_written_to(data):
    image = Image(data, GIVEN)
    start = image.addresses["entry"]
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, permissions = line.split()[:2]
            low, high = (int(end, 16) for end in span.split("-"))
            if low <= start < high:
                assert permissions == "r-xp"
                return
    raise AssertionError("the code is nowhere")


def test_memory_is_given_back(data):
    def areas():
        with open("/proc/self/maps") as maps:
            return sum("r-xp" in line for line in maps)

    Image(data, GIVEN)
    gc.collect()
    before = areas()
    for _ in range(50):
        Image(data, GIVEN)
    gc.collect()
    assert areas() <= before + 1


CALLER = (
    "declare i64 @nowhere_to_be_found(i64)\n"
    + """
define i64 @entry(i64 %i) {
  %x = call i64 @nowhere_to_be_found(i64 %i)
  ret i64 %x
}"""
)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"\x7fELG" + data[4:],
        lambda data: data[:18] + b"\xb7\0" + data[20:],  # another processor's
        lambda data: with_small_addresses(TEXT),  # they are relative to the code
        lambda data: object_file(CALLER),
    ],
    ids=["magic", "machine", "relative", "undefined"],
)
def test_what_it_does_not_know_it_leaves_to_llvm(data, spoil):
    with pytest.raises(Unsupported):
        Image(spoil(data), GIVEN)


# 64-bit addresses reach all of the memory, so code that has no others works wherever it and the
# process's functions lie.  On ARM, LLVM's newer linker puts a table of addresses beside the code.
ABSOLUTE = {
    "x86-64-windows": ("coff x86-64", {"ADDR64", "ADDR32NB"}),
    "x86-64-macos": ("macho x86-64", {"UNSIGNED"}),
    "aarch64-macos": (
        "macho aarch64",
        {"UNSIGNED", "SUBTRACTOR", "BRANCH26", "GOT_LOAD_PAGE21", "GOT_LOAD_PAGEOFF12"},
    ),
}


def test_other_systems_can_link_the_code():
    runs = {
        target: subprocess.Popen(
            [sys.executable, relocations.__file__],
            env={**os.environ, "NAMOO_TARGET_CPU": target, "NAMOO_CACHE": "off"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for target in ABSOLUTE
    }
    for target, run in runs.items():
        lines = run.communicate()[0].splitlines()
        assert run.returncode == 0 and lines
        kind, allowed = ABSOLUTE[target]
        for line in lines:
            assert line.startswith(kind)
            assert set(line.removeprefix(kind).split()) <= allowed, target
