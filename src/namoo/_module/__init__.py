"""Models as trees: `Module`, updates of it, and ways to split and join trees."""
