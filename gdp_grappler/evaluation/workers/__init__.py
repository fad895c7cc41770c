"""TensorFlow in processes of its own.

Belongs here: starting, asking and ending them; servers that stand for the
devices of a cluster. Does not belong here: what they time (`measuring`,
`profiling`).
"""
