"""The learned policy: its files, its forward pass and the use of its odds.

Belongs here: loading and checking an exported policy, decoding its odds, and
the placers that use the policy alone. Does not belong here: training the policy
(`placer_model`).
"""
