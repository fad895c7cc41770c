"""Measured links between devices.

Belongs here: ping-pong between two devices, the line that is laid through its
times. Does not belong here: what a link is (`cluster`).
"""
