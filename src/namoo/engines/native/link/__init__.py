"""From LLVM IR to code in memory."""
