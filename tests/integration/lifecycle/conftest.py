"""Fixtures of the lifecycle tests: the line's own bench."""

from tests.integration.line.conftest import bench, models_dir, settings

__all__ = ["bench", "models_dir", "settings"]
