"""`CheckpointError`, the exception for everything that is wrong with a checkpoint."""


class CheckpointError(ValueError):
    """A file is not what it should be: damaged, incomplete, hostile, or of another format."""

    __module__ = "namoo.checkpoints"
