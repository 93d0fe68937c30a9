"""From measured to modelled: a machine file fitted to a run, and its predictions beside what was measured."""
