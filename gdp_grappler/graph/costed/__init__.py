"""Graphs whose files contain the costs of their ops; needs no TensorFlow.

Belongs here: reading JSON and CostGraphDefs, and the arrays that both become.
Does not belong here: the costs on a given cluster
(`evaluation.costs.given_costs`).
"""
