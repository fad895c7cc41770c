"""Layers of the policy network, one module per idea of the paper.

Belongs here: Keras layers that work on plain tensors. Does not belong here: the
network that combines the layers (`network`), tf-agents.
"""
