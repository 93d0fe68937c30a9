# ruff: noqa: N802, N803
"""NCCL's collectives on the streams of the driver of the tests: whoever comes waits for all, the first computes."""

import ctypes

import numpy as np
from cuda.bindings import driver

available = True
NCCL_UINT8, NCCL_INT32, NCCL_INT64, NCCL_FLOAT32, NCCL_FLOAT64, NCCL_BFLOAT16 = 1, 2, 4, 7, 8, 9
NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN = 0, 1, 2, 3
_TYPES = {1: np.uint8, 2: np.int32, 4: np.int64, 7: np.float32, 8: np.float64}
_OPS = (np.add, np.multiply, np.maximum, np.minimum)
_group: list = []
_kept: list = []  # functions that the driver still has to call


class NcclCommunicator:
    def __init__(self, ndev, commId, rank):
        self._rank = rank

    @staticmethod
    def initAll(devices):
        return [NcclCommunicator(len(devices), None, rank) for rank in range(len(devices))]

    def rank_id(self):
        return self._rank

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        def together(calls):
            sums = _OPS[op].reduce([_at(own[0], count, datatype) for own in calls]).astype(_TYPES[datatype])
            return [(own[1], sums) for own in calls]

        _group.append(((sendbuf, recvbuf), stream, together))

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        def together(calls):
            whole = np.concatenate([_at(own[0], count, datatype) for own in calls])
            return [(own[1], whole) for own in calls]

        _group.append(((sendbuf, recvbuf), stream, together))

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        def together(calls):
            return [(own[1], _at(calls[root][0], count, datatype)) for own in calls]

        _group.append(((sendbuff, recvbuff), stream, together))


def get_version():
    return 0


def groupStart():
    assert not _group


def groupEnd():
    calls = [own for own, _, _ in _group]
    streams = [driver.CUstream(stream) for _, stream, _ in _group]
    together = _group[0][2]
    _group.clear()

    def compute(_):
        for address, values in [(to, values.copy()) for to, values in together(calls)]:
            ctypes.memmove(address, values.ctypes.data, values.nbytes)

    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compute)
    _kept.append(function)
    arrived = [driver.cuEventCreate(2)[1] for _ in streams]
    for stream, event in zip(streams, arrived, strict=True):
        driver.cuEventRecord(event, stream)
        driver.cuStreamWaitEvent(streams[0], event, 0)
    address = ctypes.cast(function, ctypes.c_void_p).value
    driver.cuLaunchHostFunc(streams[0], driver.CUhostFn(_ptr=ctypes.addressof(ctypes.c_void_p(address))), 0)
    done = driver.cuEventCreate(2)[1]
    driver.cuEventRecord(done, streams[0])
    for stream in streams:
        driver.cuStreamWaitEvent(stream, done, 0)


def _at(address, count, datatype):
    kind = np.dtype(np.uint16 if datatype == NCCL_BFLOAT16 else _TYPES[datatype])
    return np.frombuffer((ctypes.c_char * (count * kind.itemsize)).from_address(address), kind)
