"""Layers of the placer network, one module per idea of the paper.

Belongs here: Keras layers that know tensors only. Does not belong here: the
network they add up to (`network`), tf-agents.
"""
