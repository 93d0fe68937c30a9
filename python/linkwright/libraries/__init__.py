"""Communication libraries on healthy machines.

settings.py   an operator's words to a described machine, its network and its library (rules: `settings.toml`)
times.py      the time of a collective there, by the plan that the library would choose
"""
