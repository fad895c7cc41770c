"""Training of the move network on a user's graph, by PPO.

An *episode* starts with a placement and improves it move by move, as the placer
`gdp_policy` does. A *look* is one step of an episode: moves are drawn, and the
policy chooses which of them to price.

Belongs here: episodes, the network as TensorFlow ops, the state of a run, and
the run itself. Does not belong here: training of the network of one forward
pass (`placer_model.training`), drawing of moves
(`gdp_grappler.placers.search.moves`), training on random graphs
(`placer_model.pretraining`).
"""
