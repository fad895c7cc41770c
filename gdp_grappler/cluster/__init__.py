"""Where ops can go: devices, links, and placements onto them.

Belongs here: descriptions of machines, a placement and its validity, a
placement on disk. Does not belong here: seconds (`evaluation`), choosing
(`placers`).
"""
