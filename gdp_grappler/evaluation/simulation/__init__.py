"""The simulation of a step.

Belongs here: the simulator, whose docstring states the rules; its event loop in
C++; the schedule that it returns. Does not belong here: costs of ops (`costs`),
the order in which ops should run (`ordering`).
"""
