"""Makes the notebooks, terminal sessions and pictures of the pages anew."""
