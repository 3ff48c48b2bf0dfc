"""Types of mutable references."""


class AbstractRef:
    """The type of a mutable reference; namoo has no such values, so nothing is an instance."""
