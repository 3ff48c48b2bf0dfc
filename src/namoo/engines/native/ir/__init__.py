"""LLVM IR as text: functions, index arithmetic, vectors, elementary functions."""
