"""The papers' tables and figures, made anew by `python -m benchmarks.paper`.

Belongs here: which cells of `gdp_bench` a table of a paper consists of, and how
it is shown beside what was published. Does not belong here: cells themselves
(`placer_model.benchmark`).
"""
