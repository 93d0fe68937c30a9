"""From measured to modelled: a machine file fitted to a run, and its predictions compared with the measurements."""
