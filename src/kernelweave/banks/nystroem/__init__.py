"""Nystroem features of many rows: landmarks, their features, and where these are held."""
