"""Programs that run in several processes: joining them, and watching that all are alive."""
