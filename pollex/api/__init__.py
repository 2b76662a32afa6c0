"""The Python API: each use case as a function with typed keyword arguments."""
