"""The moves of a search: which sets of ops change their device.

Belongs here: kinds of moves, drawing them, and the network that chooses the
moves that are priced. Does not belong here: features of moves
(`features.moves`), training the network (`placer_model.pretraining`).
"""
