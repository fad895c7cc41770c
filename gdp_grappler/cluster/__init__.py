"""Clusters of devices and links, and placements of ops onto the devices.

Belongs here: descriptions of machines, a placement and its validity, a
placement on disk. Does not belong here: step times (`evaluation`), the choice
of devices (`placers`).
"""
