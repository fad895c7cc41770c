"""The machine behind `simulator`, in C++.

Belongs here: the native simulator, its arrays, the schedule it returns. Does
not belong here: what ops cost (`costs`), who asks for prices.
"""
