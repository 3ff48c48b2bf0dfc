"""What is wrong with a checkpoint, as one type of exception."""


class CheckpointError(ValueError):
    """A file is not what it should be: damaged, incomplete, hostile, or of another kind."""
