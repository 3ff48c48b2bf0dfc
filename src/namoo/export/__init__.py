"""`namoo.export`: functions as programs in files, and symbolic shapes, under JAX's names."""

from namoo._base.lazy import lazy as _lazily

_TABLE = {
    "dimensions.expression": "is_symbolic_dim",
    "dimensions.scope": "symbolic_shape SymbolicScope",
    "export.c_library": "to_c",
    "export.checks": """
        default_export_platform DisabledSafetyCheck maximum_supported_calling_convention_version
        minimum_supported_calling_convention_version
    """,
    "export.exported": "deserialize export Exported",
    "export.specs": "symbolic_args_specs",
    "export.trees": "register_namedtuple_serialization register_pytree_node_serialization",
}

__getattr__, __dir__ = _lazily(__name__, _TABLE, guarded=True)
