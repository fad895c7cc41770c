"""What a move looks like before it is priced.

Belongs here: numbers that say of a move, from one placement and its simulated
step, what it changes. Does not belong here: how moves are drawn (`placers`),
what is made of the numbers.
"""
