"""The subcommands of `gdp`, a module each: `add` declares it, `run` does it.

Belongs here: flags, calls of `api`, printed text. Does not belong here: code
that another program could use.
"""
