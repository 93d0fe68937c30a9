"""One GPU through its driver: memory, launches, clocks, all by calls of `cuda.bindings`.

The GPU is the first that the driver shows; CUDA_VISIBLE_DEVICES chooses another.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from linkwright.base.errors import NoGpuError, WaivedError
from linkwright.base.units import NS_PER_MS

from . import compiler, driver
from .job import Job

# The driver refuses allocations of 0 bytes, but an empty array needs an address.
_LEAST_BYTES = 256
_BUS_ID_BYTES = 20


@functools.cache
def device() -> Device:
    """The GPU of this process."""
    return devices("cuda", 1)[0]


def devices(on: str, most: int | None = None) -> list[Device]:
    """The first GPUs that the driver shows, each with a context; at least one."""
    bindings = driver.started(on)
    count = int(driver.call(bindings, f"--on {on}", "cuDeviceGetCount"))
    if count < 1:
        raise NoGpuError(f"--on {on}: the NVIDIA driver sees no GPU; CUDA_VISIBLE_DEVICES may hide them all")
    return [Device(bindings, number) for number in range(min(count, most or count))]


@contextmanager
def asked(on: str, most: int | None = None) -> Iterator[list[Device]]:
    """The first GPUs for a few questions; they are free again for launches, which are separate processes."""
    found = devices(on, most)
    try:
        yield found
    finally:
        for each in found:
            each.close()


class Device:
    """A GPU and its context."""

    def __init__(self, bindings: ModuleType, number: int = 0):
        self._driver = bindings
        self._modules: dict[tuple, object] = {}
        self._events: list = []
        self.number = number
        self._device = self._call("cuDeviceGet", number)
        self.name = driver.text(self._call("cuDeviceGetName", 256, self._device))
        if compiler.number(self.architecture) < compiler.number(compiler.LEAST) or not self.attribute(
            "COOPERATIVE_LAUNCH"
        ):
            raise NoGpuError(
                f"{self.name} ({self.architecture}) lacks acquire and release accesses, or cooperative launches; GPUs "
                f"from 2017 (Volta, {compiler.LEAST}) on have them: CUDA_VISIBLE_DEVICES chooses another"
            )
        self.context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self.make_current()

    def close(self) -> None:
        """Release the context; a GPU in mode EXCLUSIVE_PROCESS gives one to a single process."""
        self._modules.clear()
        self._events.clear()
        self._call("cuDevicePrimaryCtxRelease", self._device)

    def make_current(self) -> None:
        """Direct the next calls to this GPU; a process with one GPU does so once."""
        self._call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: object, bears: Container[str] = ()):
        """A call of the driver on this GPU, as `driver.call`."""
        self.make_current()
        return self._call(name, *arguments, bears=bears)

    def attribute(self, name: str) -> int:
        """An attribute of the GPU by its name in the driver."""
        key = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self._call("cuDeviceGetAttribute", key, self._device)

    @functools.cached_property
    def architecture(self) -> str:
        """The target of kernels, such as `sm_90`."""
        return f"sm_{self.attribute('COMPUTE_CAPABILITY_MAJOR')}{self.attribute('COMPUTE_CAPABILITY_MINOR')}"

    @functools.cached_property
    def sm_count(self) -> int:
        """Streaming multiprocessors."""
        return self.attribute("MULTIPROCESSOR_COUNT")

    @functools.cached_property
    def most_shared_bytes(self) -> int:
        """Most shared memory of a block."""
        return self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @functools.cached_property
    def whole_sm_bytes(self) -> int:
        """Enough shared memory for a block to keep a second one off its SM."""
        return min(self.most_shared_bytes, self.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") // 2 + 1024)

    @functools.cached_property
    def has_clusters(self) -> bool:
        """Whether blocks form clusters with distributed shared memory."""
        return compiler.number(self.architecture) >= compiler.number(compiler.CLUSTERS_FROM)

    @functools.cached_property
    def memory_bytes(self) -> int:
        """Memory of the whole GPU."""
        return self._call("cuDeviceTotalMem", self._device)

    @functools.cached_property
    def bus_id(self) -> str:
        """The address on the PCI bus, by which NVML knows it."""
        return driver.text(self._call("cuDeviceGetPCIBusId", _BUS_ID_BYTES, self._device))

    def environment(self) -> dict[str, object]:
        """What a reader needs to know of the GPU."""
        return {
            "gpu": self.name,
            "architecture": self.architecture,
            "sms": self.sm_count,
            "memory_bytes": self.memory_bytes,
            "l2_bytes": self.attribute("L2_CACHE_SIZE"),
            "shared_bytes_per_block": self.most_shared_bytes,
            "clock_khz": self.attribute("CLOCK_RATE"),
            "memory_clock_khz": self.attribute("MEMORY_CLOCK_RATE"),
            "bus_id": self.bus_id,
            "driver_cuda": self._call("cuDriverGetVersion"),
            "nvrtc": compiler.version(),
        }

    def allocate(self, nbytes: int) -> int:
        """Memory of the GPU; its address."""
        return int(self._call("cuMemAlloc", max(nbytes, _LEAST_BYTES)))

    def free(self, address: int) -> None:
        """Give memory back."""
        self._call("cuMemFree", address)

    def write(self, address: int, array: np.ndarray) -> None:
        """Copy from the host."""
        if array.nbytes:
            array = np.ascontiguousarray(array)
            self._call("cuMemcpyHtoD", address, array.ctypes.data, array.nbytes)

    def read(self, address: int, like: np.ndarray) -> np.ndarray:
        """Copy to the host, into an array of the shape and type of `like`."""
        found = np.empty_like(like)
        if found.nbytes:
            self._call("cuMemcpyDtoH", found.ctypes.data, address, found.nbytes)
        return found

    def allocate_host(self, nbytes: int) -> int:
        """Pinned memory of the host that the GPU can reach; its address."""
        flags = self._driver.CU_MEMHOSTALLOC_DEVICEMAP
        return int(self._call("cuMemHostAlloc", max(nbytes, _LEAST_BYTES), flags))

    def free_host(self, address: int) -> None:
        """Give pinned memory back."""
        self._call("cuMemFreeHost", address)

    def mapped(self, address: int) -> int:
        """The address at which the GPU sees pinned memory."""
        return int(self._call("cuMemHostGetDevicePointer", address, 0))

    def copy_in(self, address: int, host: int, nbytes: int) -> None:
        """Copy from the host, and wait for the end."""
        self._call("cuMemcpyHtoD", address, host, nbytes)

    def copy_out(self, address: int, host: int, nbytes: int) -> None:
        """Copy to the host, and wait for the end."""
        self._call("cuMemcpyDtoH", host, address, nbytes)

    def fill(self, address: int, word: int, words: int) -> None:
        """Start to overwrite memory with one 32-bit word."""
        self._call("cuMemsetD32Async", address, word, words, 0)

    def elapsed_ns(
        self, work: Callable[[], object], times: int = 1, *, meanwhile: Callable[[], object] = lambda: None
    ) -> np.ndarray:
        """Times on the GPU of what `work` starts, `times` in a row, by events between them.

        The host runs `meanwhile` in parallel. Events resolve half a microsecond.
        """
        while len(self._events) <= times:
            self._events.append(self._call("cuEventCreate", 0))
        marks = self._events[: times + 1]
        self._call("cuEventRecord", marks[0], 0)
        for mark in marks[1:]:
            work()
            self._call("cuEventRecord", mark, 0)
        meanwhile()
        self._call("cuEventSynchronize", marks[-1])
        spans = itertools.pairwise(marks)
        return np.array([self._call("cuEventElapsedTime", *span) for span in spans]) * NS_PER_MS

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """A queue of copies that does not wait for kernels."""
        found = Stream(self._call)
        try:
            yield found
        finally:
            found.close()

    @property
    def host_stores(self) -> bool:
        """Whether the host can store into GPU memory in place."""
        return bool(self.attribute("DIRECT_MANAGED_MEM_ACCESS_FROM_HOST"))

    def allocate_window(self, nbytes: int) -> int:
        """GPU memory that the host stores into; needs `host_stores`, and `free` releases it."""
        bindings = self._driver
        flags = int(bindings.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)
        address = int(self._call("cuMemAllocManaged", max(nbytes, _LEAST_BYTES), flags))
        advice, kinds = bindings.CUmem_advise, bindings.CUmemLocationType
        here = self._location(kinds.CU_MEM_LOCATION_TYPE_DEVICE, self.number)
        host = self._location(kinds.CU_MEM_LOCATION_TYPE_HOST, 0)
        self._with_location("cuMemAdvise", address, nbytes, advice.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here)
        self._with_location("cuMemAdvise", address, nbytes, advice.CU_MEM_ADVISE_SET_ACCESSED_BY, host)
        self._with_location("cuMemPrefetchAsync", address, nbytes, here, 0, bindings.CUstream(0))
        self.wait()
        return address

    def _location(self, kind: object, number: int) -> object:
        found = self._driver.CUmemLocation()
        found.type, found.id = kind, number
        return found

    def _with_location(self, name: str, *arguments: object) -> None:
        """A call with a location: in CUDA 12 the second of two forms, in CUDA 13 the only one."""
        second = f"{name}_v2"
        self._call(second if hasattr(self._driver, second) else name, *arguments)

    @contextmanager
    def loaded(self, job: Job) -> Iterator[Loaded]:
        """The job with its arrays in GPU memory, while the context lasts."""
        loaded = Loaded(self, job)
        try:
            yield loaded
        finally:
            loaded.close()

    def start(self, job: Job, words: int, stream: object = 0) -> None:
        """Launch a kernel whose words lie at this address, without waiting for its end."""
        function = self._function(job)
        config = self._driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = job.blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = job.threads, 1, 1
        config.sharedMemBytes = job.shared_bytes
        config.hStream = stream
        config.attrs = self._attributes(job)
        config.numAttrs = len(config.attrs)
        if job.cluster > 1:
            at_once = self._call(
                "cuOccupancyMaxActiveClusters", function, config, bears=("CUDA_ERROR_INVALID_CLUSTER_SIZE",)
            )
            self._check_clusters(job, at_once or 0)
        self._call("cuLaunchKernelEx", config, function, ((words,), (ctypes.c_void_p,)), 0)

    def _check_clusters(self, job: Job, at_once: int) -> None:
        wanted = job.blocks // job.cluster
        if at_once < wanted:
            many = f"at most {at_once} clusters" if at_once else "no cluster"
            raise WaivedError(
                f"cuda: waived: {self.name} forms {many} of {job.cluster} blocks with {job.shared_bytes} bytes of "
                f"shared memory each, and {wanted} are needed at once; use fewer blocks or a smaller size"
            )

    def wait(self) -> None:
        """Wait until everything that was started has ended."""
        self._call("cuCtxSynchronize")

    def _attributes(self, job: Job) -> list:
        bindings, found = self._driver, []
        if job.cooperative:
            attribute = bindings.CUlaunchAttribute()
            attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            found.append(attribute)
        if job.cluster > 1:
            attribute = bindings.CUlaunchAttribute()
            attribute.id = bindings.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = job.cluster, 1, 1
            found.append(attribute)
        return found

    def _function(self, job: Job) -> object:
        """The kernel of a job: compiled, loaded, and granted its shared memory."""
        key = (job.source, job.defines)
        if key not in self._modules:
            code = compiler.code(job.source, self.architecture, job.defines)
            self._modules[key] = self._call("cuModuleLoadData", code)
        function = self._call("cuModuleGetFunction", self._modules[key], job.kernel.encode())
        kinds = self._driver.CUfunction_attribute
        if job.shared_bytes:
            kind = kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, kind, job.shared_bytes)
        if job.cluster > 8:  # up to 8, every GPU with clusters can do without permission
            kind = kinds.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._call("cuFuncSetAttribute", function, kind, 1)
        return function

    def _call(self, name: str, *arguments: object, bears: Container[str] = ()):
        return driver.call(self._driver, getattr(self, "name", "GPU"), name, *arguments, bears=bears)


class Stream:
    """A queue of work on a GPU that does not wait for its default stream."""

    def __init__(self, call: Callable):
        self._call = call
        self.handle = call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING

    def copy_in(self, address: int, host: int, nbytes: int) -> None:
        """Enqueue a copy from the host."""
        self._call("cuMemcpyHtoDAsync", address, host, nbytes, self.handle)

    def copy_out(self, address: int, host: int, nbytes: int) -> None:
        """Enqueue a copy to the host."""
        self._call("cuMemcpyDtoHAsync", host, address, nbytes, self.handle)

    def wait(self) -> None:
        """Wait until everything has ended."""
        self._call("cuStreamSynchronize", self.handle)

    def close(self) -> None:
        """Destroy the queue."""
        self._call("cuStreamDestroy", self.handle)


class Loaded:
    """A job whose arrays are in GPU memory."""

    def __init__(self, device: Device, job: Job):
        self._device, self._job = device, job
        self._addresses: dict[str, int] = {}
        try:
            self._words = job.flat(self._upload)
            self._at = self._upload("", self._words)
        except BaseException:
            self.close()
            raise

    @property
    def source(self) -> str:
        """File of the kernel."""
        return self._job.source

    def run(self) -> None:
        """Launch, and wait for the end."""
        self.start()
        self._device.wait()

    def start(self, stream: object = 0) -> None:
        """Launch without waiting; `Device.wait` does that."""
        self._device.start(self._job, self._at, stream)

    def address(self, name: str) -> int:
        """The address of an array."""
        return self._addresses[name]

    def read(self, name: str) -> np.ndarray:
        """The present contents of an array."""
        return self._device.read(self._addresses[name], self._job.words[name])

    def write(self, name: str, array: np.ndarray) -> None:
        """Overwrite an array."""
        self._device.write(self._addresses[name], array)

    def number(self, name: str) -> int:
        """The present value of a word that is a number."""
        return int(self._words[list(self._job.words).index(name)])

    def set(self, name: str, number: int) -> None:
        """Change a word that is a number."""
        self._words[list(self._job.words).index(name)] = number
        self._device.write(self._at, self._words)

    def restore(self, *names: str) -> None:
        """Reset arrays to the contents that the job began with."""
        for name in names:
            self.write(name, self._job.words[name])

    def close(self) -> None:
        """Give the memory back."""
        while self._addresses:
            self._device.free(self._addresses.popitem()[1])

    def _upload(self, name: str, array: np.ndarray) -> int:
        self._addresses[name] = self._device.allocate(array.nbytes)
        self._device.write(self._addresses[name], array)
        return self._addresses[name]
