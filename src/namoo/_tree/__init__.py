"""The parts behind `namoo.tree` and `namoo.tree_util`; import those."""
