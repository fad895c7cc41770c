"""Rules for ops: the devices that they may have, and their control edges.

Belongs here: kernels, types of nodes, tensors in the memory of a GPU's host,
groups that must share a device, pins, ops that may get control edges. Does not
belong here: the devices of a cluster (`cluster.constraints`).
"""
