"""Fixtures of the tests of language and scan in the line: the line's own bench."""

from tests.integration.line.conftest import bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]
