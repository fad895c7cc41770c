"""The papers' tables and figures, made anew by `python -m benchmarks.paper`.

A module here says which cells of `gdp_bench` make a table of a paper, or shows
the table beside the published figures. The cells themselves are computed in
`placer_model.benchmark`.
"""
