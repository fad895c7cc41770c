"""What `profiler` needs to time ops, links and memory buses.

Belongs here: the workers that time, fits to what they saw. Does not belong
here: reading a profile (`costs`), whole steps (`measuring`).
"""
