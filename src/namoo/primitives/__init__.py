"""The operations, one room each: every rule of a primitive stands beside its public function."""
