"""The graph of a program: nodes, and the emitter that builds them."""
