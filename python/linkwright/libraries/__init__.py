"""Communication libraries on healthy machines.

settings.py   map an operator's description to a machine, its network and its library (rules: `settings.toml`)
times.py      time a collective there, with the plan that the library would choose
"""
