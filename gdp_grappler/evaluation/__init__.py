"""The costs of placements, in seconds and bytes.

Belongs here: the interface of evaluators (`evaluator`), evaluators that wrap
others, all results of a simulation of one placement (`price`), lower bounds,
and a folder for each source of costs. Does not belong here: choosing devices
(`placers`), drawing (`reports`).
"""
