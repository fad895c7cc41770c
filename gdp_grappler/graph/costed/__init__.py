"""Graphs that bring the costs of their ops, without TensorFlow.

Belongs here: JSON, CostGraphDef, the arrays both become. Does not belong
here: what those costs are on a cluster (`evaluation.costs.given_costs`).
"""
