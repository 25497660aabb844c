"""Algorithms as they were published, kept for comparison."""
