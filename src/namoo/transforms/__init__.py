"""The transformations, as traces: forward mode, batching, staging, linearising, transposing."""
