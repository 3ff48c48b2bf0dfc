"""Models as trees: `Module`, updates of modules, and functions that split and join trees."""
