"""The learned policy: its files, its forward pass and what its odds stand for.

Belongs here: loading and checking an exported policy, decoding its odds, and
the placers that use the policy alone. Does not belong here: training the policy
(`placer_model`).
"""
