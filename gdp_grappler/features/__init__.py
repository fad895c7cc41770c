"""Inputs of the policy: features of a graph and of a cluster.

Belongs here: raw features, each computed in exactly one place, and the schema
that a policy is checked against. Does not belong here: normalisation and
vocabularies; they are part of the exported policy.
"""
