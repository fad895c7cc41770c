"""Training graphs that nobody wrote, as many as one likes.

Belongs here: random graphs with backward pass, variables and updates, clusters
to put them on, memories they are known to fit. Does not belong here: graphs of
real models (`workloads`), what is learned from them (`placer_model`).
"""
