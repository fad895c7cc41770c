"""Inputs of the move network: features of moves before they are priced.

Belongs here: numbers that describe how a move changes one placement and its
simulated step. Does not belong here: how moves are drawn (`placers`), and the
network itself.
"""
