"""Formats from before Office Open XML: RTF and Word's .doc."""
