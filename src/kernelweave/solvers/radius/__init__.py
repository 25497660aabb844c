"""Kernel weights by a ratio of margin and radius: criteria, descents and cutting planes."""
