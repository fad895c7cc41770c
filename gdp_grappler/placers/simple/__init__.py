"""Placers that follow one rule: one device, round robin, random, the expert.

Belongs here: placers that neither price a placement nor search. Does not
belong here: a placement that the user gives (`plans`).
"""
