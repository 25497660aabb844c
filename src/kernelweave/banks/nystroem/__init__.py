"""Nystroem features for large n: landmarks, features in blocks of rows, and their storage."""
