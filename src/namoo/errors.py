"""The exception types that users catch. They are JAX's, so that `except` clauses keep working."""


class JAXTypeError(TypeError):
    """The base class of errors about types."""


class JAXIndexError(IndexError):
    """The base class of errors about indices."""


class JaxprTypeError(TypeError):
    """The types in a program do not fit one another."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions has no answer."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete Python value is needed."""


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value decided an `if`, `while`, `and`, `or`, `not` or `assert`."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer: a `range`, an index of a list, a shape."""


class TracerArrayConversionError(JAXTypeError):
    """A traced value was passed to NumPy itself."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value was kept after its transformation had finished."""


class KeyReuseError(RuntimeError):
    """A random key was consumed twice."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""
