"""The part of ttnn that the executor calls; launches run on CPU threads."""

import hashlib
import os
import tempfile
from collections import namedtuple
from enum import Enum
from pathlib import Path
from types import SimpleNamespace

import cores
import numpy as np

COLUMNS, LINES = 8, 9
uint32 = "uint32"
ROW_MAJOR_LAYOUT = "row major"
BASE = 0x10000
BufferType = Enum("BufferType", "L1 DRAM")
ShardOrientation = Enum("ShardOrientation", "ROW_MAJOR COL_MAJOR")
TensorMemoryLayout = Enum("TensorMemoryLayout", "HEIGHT_SHARDED WIDTH_SHARDED")
DataMovementProcessor = Enum("DataMovementProcessor", "RISCV_0 RISCV_1")
NOC = Enum("NOC", "NOC_0 NOC_1")
CoreCoord = namedtuple("CoreCoord", "x y")
CoreRange = namedtuple("CoreRange", "start end")
ShardSpec = namedtuple("ShardSpec", "grid shape orientation")
MemoryConfig = namedtuple("MemoryConfig", "layout buffer shards")
DataMovementConfigDescriptor = namedtuple("DataMovementConfigDescriptor", "processor noc")
ProgramDescriptor = namedtuple("ProgramDescriptor", "kernels semaphores cbs")
CoreRangeSet = frozenset


class KernelDescriptor(SimpleNamespace):
    SourceType = Enum("SourceType", "SOURCE_CODE FILE_PATH")


class Tensor:
    def __init__(self, rows, *, device, layout, mem_config, data_type):
        assert rows.flags.writeable, "the real one takes no array that is read-only"
        assert (layout, data_type) == (ROW_MAJOR_LAYOUT, uint32)
        assert (mem_config.layout, mem_config.buffer) == (TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1)
        (whole,) = mem_config.shards.grid
        self.size = whole.end.x + 1, whole.end.y + 1
        assert rows.shape == (self.size[0] * self.size[1], mem_config.shards.shape[1])
        self.rows = rows

    def buffer_address(self):
        return BASE

    def cpu(self):
        return self

    def to_numpy(self):
        return self.rows.astype(np.int64)  # the real one may widen, too


class Device:
    def compute_with_storage_grid_size(self):
        return CoreCoord(COLUMNS, LINES)

    def worker_core_from_logical_core(self, core):
        return CoreCoord(core.x + 1, core.y + 2)

    def arch(self):
        return "Arch.WORMHOLE_B0"


def open_device(device_id):
    if os.environ.get("STAND_IN_FAILS") == "open":
        raise RuntimeError("TT_THROW\nthe board is in use by process 4711")
    return Device()


def close_device(device):
    pass


def get_memory_view(device, kind):
    return SimpleNamespace(largest_contiguous_bytes_free_per_bank=1393312)


def generic_op(tensors, program):
    if os.environ.get("STAND_IN_FAILS") == "launch":
        print("a line that explains", flush=True)
        os._exit(9)
    if record := os.environ.get("STAND_IN_RECORDS"):
        Path(record).write_text(" ".join(kernel.config.noc.name for kernel in program.kernels))
    tensor = tensors[-1]
    first = program.kernels[0]
    text = first.kernel_source
    source = Path(tempfile.gettempdir()) / f"linkwright-walk-{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    source.write_text(text, encoding="utf-8")
    by_processor = []
    for number, kernel in enumerate(program.kernels):
        config = kernel.config
        place = number ^ (first.config.noc == NOC.NOC_1)
        assert (config.processor, config.noc) == (list(DataMovementProcessor)[place], list(NOC)[place])
        by_processor.append([words for _, words in kernel.runtime_args])
    used = [at.x + at.y * tensor.size[0] for at, _ in first.runtime_args]
    defines = tuple(f"{name}={value}" for name, value in first.defines)
    arguments = np.array(by_processor, np.uint32).transpose(1, 0, 2)
    tensor.rows = cores.cores(source, defines, "address").run(tensor.size, used, arguments, tensor.rows)
