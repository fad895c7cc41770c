"""The simulated step.

Belongs here: the simulator, whose docstring states its rules, the machine
behind it in C++, the schedule it returns. Does not belong here: what ops cost
(`costs`), in which order they should go (`ordering`).
"""
