"""What the function `with_refs` of a backward function takes and returns in place of cotangents."""

from namoo.api.ref_derivatives import DidntWant, DontWant, GradRef, GradValue

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]
__dir__ = __all__.copy
