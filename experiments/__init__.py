"""Published tables, run again on the real data."""
