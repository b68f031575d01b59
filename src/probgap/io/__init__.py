"""Models in files: saved without pickle, and read with suspicion."""

from probgap.io._files import load, read_metadata, save

__all__ = ["load", "read_metadata", "save"]
