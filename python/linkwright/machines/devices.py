"""Devices of a machine whose chips form a ladder: single chips, and slices of 2, 4, 8, ... of them.

A chip has a device id, the order in which the host found it, and a position on the ladder. Inside a device,
chips are counted from 0 by position (the vendor's DNC id), and tiles in the same order.
"""

from __future__ import annotations

from linkwright import _native
from linkwright.base.errors import UsageError


def rows(machine: _native.Machine) -> list[dict[str, object]]:
    """One row per device: `device, type, position`, `members` (device ids by DNC id), `tiles` (first, last of each)."""
    listed = _native.devices(machine)
    chips = sum(len(device["members"]) == 1 for device in listed)
    tiles = machine.ranks // chips
    return [
        {
            "device": device["id"],
            "type": "IPU" if len(device["members"]) == 1 else f"{len(device['members'])} IPUs",
            "position": device["first"],
            "members": device["members"],
            "tiles": [(tiles * dnc, tiles * (dnc + 1) - 1) for dnc in range(len(device["members"]))],
        }
        for device in listed
    ]


def of(machine: _native.Machine, wanted: str) -> int:
    """The device made of exactly the chips `wanted`, as device ids separated by commas; a single id is that device."""
    try:
        ids = [int(word) for word in wanted.split(",")]
    except ValueError:
        raise UsageError(f"`{wanted}` does not name chips; write device ids separated by commas, such as 5,7") from None
    listed = _native.devices(machine)
    if len(ids) > 1:
        return _native.device_of(machine, ids)["id"]
    if not 0 <= ids[0] < len(listed):
        raise UsageError(f"{machine.name} has no device {ids[0]}; choose from 0..{len(listed) - 1}")
    return ids[0]
