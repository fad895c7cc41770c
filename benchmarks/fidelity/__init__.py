"""How true the simulator is: the same placements priced and measured.

Belongs here: the graphs, the placements and the page of that one study
(`make fidelity`). Does not belong here: anything a user of the package needs.
"""
