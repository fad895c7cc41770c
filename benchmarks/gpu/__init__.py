"""Measurements that need a GPU card; see `__main__`."""
