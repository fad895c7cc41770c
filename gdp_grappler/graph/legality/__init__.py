"""Which devices TensorFlow allows an op.

Belongs here: kernels, node types, groups that must share a device, pins. Does
not belong here: what a cluster has (`cluster.constraints`).
"""
