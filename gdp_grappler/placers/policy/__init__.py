"""The placers `gdp_one_shot` (the policy) and `gdp_policy` (the move network).

Belongs here: loading and checking exported networks, decoding the odds of the
policy, and improving drafts by moves. Does not belong here: training
(`placer_model`).
"""
