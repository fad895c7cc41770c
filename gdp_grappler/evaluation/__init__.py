"""What a placement costs, in seconds and bytes.

Belongs here: what every evaluator answers (`evaluator`), all that a simulation
says of one placement (`price`), what a search spends (`counting_evaluator`); a
folder for each way to know. Does not belong here: choosing devices (`placers`),
drawing (`reports`).
"""
