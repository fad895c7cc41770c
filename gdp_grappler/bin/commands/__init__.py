"""The subcommands of `gdp`, a module each: `add` declares it, `run` does it.

Belongs here: flags, one journey through the packages, what is printed. Does
not belong here: anything that another program could want.
"""
