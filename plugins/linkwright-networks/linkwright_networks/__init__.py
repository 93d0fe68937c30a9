"""Readers of network descriptions of simulators, found by the entry points of the group `linkwright.networks`."""
