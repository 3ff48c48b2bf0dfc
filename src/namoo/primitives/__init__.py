"""The primitives: every rule of a primitive is next to its public function."""
