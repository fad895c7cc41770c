"""PPO for the network of moves, on a user's graph.

An *episode* starts with a placement and improves it move by move, as
`gdp_policy` does.

Belongs here: episodes, the network as TensorFlow ops, what a run remembers, and
the run itself. Does not belong here: the network of one forward pass and its
levers (`placer_model.training`), how moves are drawn
(`gdp_grappler.placers.search.moves`), training on drawn graphs
(`placer_model.pretraining`).
"""
