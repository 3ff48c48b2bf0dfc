"""Every operation goes through a file: the samples of the conformance table, written and read."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.harness import all_primitives, load, numbers
from namoo import enable_x64
from namoo.core.avals import aval_of
from namoo.core.jaxpr import ClosedJaxpr, eval_jaxpr
from namoo.export import container, operations
from namoo.export.programs import ProgramReader, ProgramWriter
from namoo.transforms.stage import stage

# Functions of this process, operations of several devices, and references, which become values.
STAYS = {
    "addupdate", "all_gather", "all_to_all", "axis_index", "cond_of_each", "custom_jvp_call",
    "custom_lin", "custom_vjp_call", "custom_vmap_call", "debug_callback", "debug_print",
    "device_put", "empty_ref", "ffi_call", "ffi_call_with_effects", "free_ref", "freeze", "get",
    "inspect_sharding", "io_callback",
    "new_ref", "pbroadcast", "pmax", "pmin", "ppermute", "psum", "pure_callback", "pvary",
    "reduce_scatter", "require", "reshard", "shard_map", "sharding_constraint", "swap",
}  # fmt: skip
SAMPLES = [s for s in load()[0] if s.primitive.name not in STAYS and s.axis is None]


def test_every_operation_has_a_name_or_a_reason():
    found = {prim.name for prim in all_primitives().values()}
    assert found - STAYS == operations.NAMES
    for name in operations.NAMES:
        assert operations.operation(name).name == name


@pytest.mark.parametrize("sample", SAMPLES, ids=str)
def test_program_read_back_computes_the_same(sample):
    with enable_x64(True):
        args = sample.operands()
        try:
            jaxpr, consts = stage(sample._bind, [aval_of(x) for x in args])
        except TypeError:
            pytest.skip("the sample takes its operands otherwise")
        closed = ClosedJaxpr(jaxpr, consts)
        writer = ProgramWriter()
        try:
            number = writer.number_of(closed)
        except ValueError as error:
            assert "among its parameters" in str(error) and sample.primitive.name == "schur"
            return
        document = {"types": writer.types, "programs": writer.programs}
        document, arrays = container.unpack(container.pack(document, writer.arrays))
        reader = ProgramReader(document["types"], arrays, None)
        for program in document["programs"]:
            reader.read(program)
        read = reader.program(number)
        assert repr(read) == repr(closed) or sample.primitive.holds_program
        found = eval_jaxpr(read.jaxpr, read.consts, *args)
        wanted = eval_jaxpr(closed.jaxpr, closed.consts, *args)
        for x, y in zip(found, wanted, strict=True):
            assert aval_of(x) == aval_of(y)
            np.testing.assert_array_equal(numbers(x), numbers(y))
