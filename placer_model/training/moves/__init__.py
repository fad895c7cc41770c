"""PPO for the network of moves, on a user's graph.

An *episode* starts with a placement and improves it move by move, as
`gdp_policy` does. What belongs here: episodes, the network as TensorFlow ops,
what a run remembers, and the run itself.
"""
