"""The XLA engine: programs become StableHLO text, which XLA compiles for CPUs, GPUs and TPUs."""
