"""Fixtures of the scan's tests in the line: the line's own bench."""

from tests.integration.line.conftest import bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]
