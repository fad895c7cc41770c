"""How a policy learns: the only home of tf-agents.

Belongs here: pricing what a policy proposes, reward, exploration, PPO, the
levers around it, checkpoints and the record of a run. Does not belong here:
the network (`placer_model.network`), flags (`placer_model.bin`).
"""
