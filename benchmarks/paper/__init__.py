"""Makes the papers' tables and figures again: `python -m benchmarks.paper`.

A module here lists the cells of `gdp_bench` that make a table of a paper, or
shows the table beside the published figures. `placer_model.benchmark` computes
the cells.
"""
