"""What a placement costs, in seconds and bytes.

Belongs here: prices of ops, the simulator, measured steps. Does not belong
here: choosing devices (`placers`), drawing (`reports`).
"""
