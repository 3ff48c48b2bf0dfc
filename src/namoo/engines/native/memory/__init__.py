"""Memory: buffers in the arena, and results that overwrite donated inputs."""
