"""Random training graphs, in any number.

Belongs here: random graphs with backward pass, variables and updates, clusters
for them, and memories that they are known to fit. Does not belong here: graphs
of real models (`workloads`), and training on these graphs (`placer_model`).
"""
