"""Parsing in killable, limited children."""
