"""The conformance table: rows of samples for every primitive, and the checks they go through."""
