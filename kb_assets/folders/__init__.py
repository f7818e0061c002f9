"""Watched folders: what lies there, whom it is for, what of it is new, and the sensor.

Belongs here: turning files into one batch a tick. What does not: reading documents (`acquire`).
"""
