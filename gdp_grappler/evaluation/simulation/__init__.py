"""The simulated step.

Belongs here: the simulator, whose docstring states its rules; its machine in
C++; the schedule that it returns. Does not belong here: costs of ops (`costs`),
the order in which they should run (`ordering`).
"""
