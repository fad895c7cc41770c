"""What a placement costs, in seconds and bytes.

Belongs here: the interface of evaluators (`evaluator`), everything that a
simulation tells about one placement (`price`), what a search spends; a folder
for each source of costs. Does not belong here: choosing devices (`placers`),
drawing (`reports`).
"""
