"""Records the notebooks, terminal sessions and pictures of docs/ again."""
