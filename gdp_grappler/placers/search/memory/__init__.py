"""Making a placement fit into the memories of its devices.

Belongs here: estimates of the memory that a group needs, the repair of a
placement that overflows, and packing from nothing. Does not belong here: the
true peak of a placement (`evaluation`).
"""
