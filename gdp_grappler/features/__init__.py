"""What the policy sees of a graph and a cluster.

Belongs here: raw features, each computed in exactly one place, and the schema
that a policy is checked against. Does not belong here: normalisation and
vocabularies; they live inside the exported policy.
"""
