"""Tries on a card what cannot be tried without one; see `__main__`."""
