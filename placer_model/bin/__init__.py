"""Console programs of the trainer.

Belongs here: flags, printing, exit codes; flags live nowhere else. Does not
belong here: training itself (`training`).
"""
