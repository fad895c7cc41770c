"""Training of the policy by tf-agents' PPO; no other package uses tf-agents.

Belongs here: pricing of the policy's placements, rewards, exploration, PPO and
optional additions to it, checkpoints and the record of a run. Does not belong
here: the network (`placer_model.network`), flags (`placer_model.bin`).
"""
