"""The GPUs of a node: queues of work, events between them, and access to each other's memory."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from linkwright.base.errors import WaivedError

from ..cuda.clocks import Throttling
from ..cuda.device import Device, Loaded, Stream
from .names import PEER, STAGED

_GREATER_OR_EQUAL = 0  # of cuStreamWaitValue32
# NCCL opens memory too.
_ALREADY_SO = ("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED")


class Queue(Stream):
    """Work of one GPU, in order."""

    def __init__(self, device: Device):
        super().__init__(device.call)
        self.device = device

    def copy(self, to: Device, target: int, source: Device, address: int, nbytes: int) -> None:
        """Bytes from one GPU to another, or within one."""
        if to is source:
            self.device.call("cuMemcpyDtoDAsync", target, address, nbytes, self.handle)
        else:
            arguments = target, to.context, address, source.context, nbytes, self.handle
            self.device.call("cuMemcpyPeerAsync", *arguments)

    def launch(self, loaded: Loaded) -> None:
        """A kernel."""
        self.device.make_current()
        loaded.start(self.handle)

    def record(self, event: object) -> None:
        """Mark the end of everything enqueued so far."""
        self.device.call("cuEventRecord", event, self.handle)

    def wait_for(self, event: object) -> None:
        """Wait until another queue has reached its mark."""
        self.device.call("cuStreamWaitEvent", self.handle, event, 0)

    def hold(self, address: int, value: int) -> None:
        """Wait until a word of the host is at least `value`."""
        self.device.call("cuStreamWaitValue32", self.handle, address, value, _GREATER_OR_EQUAL)


class Node:
    """All GPUs that this process may use."""

    def __init__(self, devices: Sequence[Device]):
        self.devices = list(devices)
        self._throttlings = [Throttling(device.bus_id) for device in devices]
        self._opened = False

    @property
    def note(self) -> str | None:
        """Why throttling is not watched, if it is not."""
        return next(filter(None, (each.note for each in self._throttlings)), None)

    def reasons(self) -> list[str]:
        """Why the clock of any GPU is lowered."""
        return list(dict.fromkeys(itertools.chain(*(each.reasons() for each in self._throttlings))))

    def take(self, path: str | None) -> None:
        """Open or close the memory of all GPUs to each other, as a path requires."""
        if path not in (None, PEER, STAGED):
            raise WaivedError(f"gpus: waived: there is no path `{path}`; use `{PEER}` or `{STAGED}`")
        opened = path != STAGED
        if opened == self._opened:
            return
        pairs = list(itertools.permutations(range(len(self.devices)), 2))
        for one, other in pairs if opened else []:
            device, peer = self.devices[one], self.devices[other]
            if not device.call("cuDeviceCanAccessPeer", device.number, peer.number):
                raise WaivedError(
                    f"gpus: waived: GPU {one} cannot reach the memory of GPU {other} ({device.name}); "
                    f"ask for path `{STAGED}`"
                )
        for one, other in pairs:
            peer = self.devices[other].context
            call = ("cuCtxEnablePeerAccess", peer, 0) if opened else ("cuCtxDisablePeerAccess", peer)
            self.devices[one].call(*call, bears=_ALREADY_SO)
        self._opened = opened
