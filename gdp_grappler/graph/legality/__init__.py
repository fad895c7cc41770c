"""What may be done to an op: which devices it may have, and which edges.

Belongs here: kernels, node types, groups that must share a device, pins, where
control edges may go. Does not belong here: what a cluster has
(`cluster.constraints`).
"""
