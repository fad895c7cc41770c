"""`gdp_bench`: every placer on every task, in the papers' tables.

Belongs here: tasks, cells and the processes they run in, what was found on
disk, tables and pictures. Does not belong here: the placers and workloads
themselves (`gdp_grappler`, `placer_model.hdp`), flags (`placer_model.bin`).
"""
