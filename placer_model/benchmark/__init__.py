"""`gdp_bench`: runs every placer on every task, and makes the papers' tables.

Belongs here: tasks, cells and their processes, files of results, tables and
pictures. A *cell* is one placer on one task. Does not belong here: the placers
and workloads themselves (`gdp_grappler`, `placer_model.hdp`), flags
(`placer_model.bin`).
"""
