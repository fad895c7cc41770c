"""Measured links between devices.

Belongs here: ping-pong between two devices, the line that is fitted to its
times. Does not belong here: the description of links (`cluster`).
"""
