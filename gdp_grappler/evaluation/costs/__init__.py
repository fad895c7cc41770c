"""Seconds and bytes of single ops, from elsewhere than the roofline.

Belongs here: families of ops, profiles and what is read off them, costs that
come with a graph. Does not belong here: the roofline (`cost_model`), making
profiles (`profiling`).
"""
