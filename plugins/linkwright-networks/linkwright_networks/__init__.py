"""Readers for the network files of simulators, found through the entry point group `linkwright.networks`."""
