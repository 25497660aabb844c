"""Kernel weights by a ratio of margin and radius: criteria, descent and cutting planes."""
