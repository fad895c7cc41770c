"""Placers that follow one rule: one device, round robin, random, the expert.

Belongs here: placers that do not search. Only `single_device` prices
placements. Does not belong here: a placement that the user gives (`plans`).
"""
