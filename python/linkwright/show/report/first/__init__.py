"""The first screen: for each machine a verdict, four tiles, what contradicts what, and a picture.

verdict.py   one sentence             tiles.py     latency, bandwidth, memory, collectives
earlier.py   the run before this one  ../findings  contradictions     ../drawing  pictures
"""
