"""The foundation of all other rooms: settings, dtypes, lazy loading, files. Knows no arrays."""
