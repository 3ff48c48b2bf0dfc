"""The exception types that users catch. They are JAX's, so that `except` clauses keep working."""

__all__ = [
    "ConcretizationTypeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]
__dir__ = __all__.copy


_PAGE = "https://docs.jax.dev/en/latest/errors.html"


class _Explained(Exception):
    """An error with a message, or with the traced value that was misused, as in JAX.

    For a value, which code written for JAX passes, the message is made of `opening` (JAX's words:
    programs and tutorials look for them), the value, `context` and the address of a page.

    Example:
        >>> print(UnexpectedTracerError("kept", "too long"))
        kept too long
        >>> print(TracerBoolConversionError(3))
        Attempted boolean conversion of 3.
        See https://docs.jax.dev/en/latest/errors.html#jax.errors.TracerBoolConversionError
    """

    opening = "Encountered an unexpected"

    def __init__(self, what: object = "", context: str = ""):
        if isinstance(what, str):
            super().__init__(f"{what} {context}" if context else what)
            return
        link = f"See {_PAGE}#jax.errors.{type(self).__name__}"
        lines = (f"{self.opening} {what!r}.", context, link)
        super().__init__("\n".join(filter(None, lines)))


class JAXTypeError(_Explained, TypeError):
    """The base class of errors about types."""


class JAXIndexError(_Explained, IndexError):
    """The base class of errors about indices."""


class JaxprTypeError(TypeError):
    """The types in a program do not fit one another."""


class ShardingTypeError(Exception):
    """The shardings of operands do not decide that of a result, or do not fit one another."""


class InconclusiveDimensionOperation(Exception):
    """A comparison of symbolic dimensions has no answer."""


class ConcretizationTypeError(JAXTypeError):
    """A traced value was used where a concrete Python value is needed."""

    opening = "Abstract tracer value encountered where concrete value is expected:"


class TracerBoolConversionError(ConcretizationTypeError):
    """A traced value decided an `if`, `while`, `and`, `or`, `not` or `assert`."""

    opening = "Attempted boolean conversion of"


class TracerIntegerConversionError(JAXTypeError):
    """A traced value was used as a Python integer: a `range`, an index of a list, a shape."""

    opening = "The __index__() method was called on"


class TracerArrayConversionError(JAXTypeError):
    """A traced value was passed to NumPy itself."""

    opening = "The numpy.ndarray conversion method __array__() was called on"


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index, so the result's shape is unknown."""

    opening = "Array boolean indices must be concrete; got"


class UnexpectedTracerError(JAXTypeError):
    """A traced value was kept after its transformation had finished."""


class KeyReuseError(_Explained, RuntimeError):
    """A random key was consumed twice."""


class JaxRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""
