"""One GPU through the driver: memory, launches, clocks. Everything here is a call of `cuda.bindings`.

The GPU is the first that the driver shows; CUDA_VISIBLE_DEVICES chooses another. Errors of the driver name the
call, the GPU and what the driver says.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np

from linkwright.errors import CudaError, NoGpuError, WaivedError

from . import compiler
from .job import Job

# An allocation of no bytes is an error of the driver; an empty array still needs an address.
_LEAST_BYTES = 256
_BUS_ID_BYTES = 20


def driver(on: str = "cuda") -> ModuleType:
    """The bindings, with the driver started; raises where there is none, and says what would do."""
    try:
        from cuda.bindings import driver as bindings
    except ImportError as error:
        raise NoGpuError(f"--on {on}: cuda-bindings is not installed; {compiler.CURE}") from error
    try:
        status = bindings.cuInit(0)[0]
    except RuntimeError as error:  # the library of the driver is not there
        raise NoGpuError(
            f"--on {on}: this machine has no NVIDIA driver (libcuda.so.1 is not found); run it where there is a GPU, "
            "or model one with --on MACHINE"
        ) from error
    if int(status):
        raise NoGpuError(
            f"--on {on}: the NVIDIA driver does not start ({status.name}); `nvidia-smi` shows whether it sees a GPU, "
            "and CUDA_VISIBLE_DEVICES which ones this process may use"
        )
    return bindings


@functools.cache
def device() -> Device:
    """The GPU of this process."""
    return devices("cuda", 1)[0]


def devices(on: str, most: int | None = None) -> list[Device]:
    """The first GPUs that the driver shows, each with a context; at least one."""
    bindings = driver(on)
    count = int(bindings.cuDeviceGetCount()[1])
    if count < 1:
        raise NoGpuError(f"--on {on}: the NVIDIA driver sees no GPU; CUDA_VISIBLE_DEVICES may hide them all")
    return [Device(bindings, number) for number in range(min(count, most or count))]


class Device:
    """A GPU and its context."""

    def __init__(self, bindings: ModuleType, number: int = 0):
        self._driver = bindings
        self._modules: dict[tuple, object] = {}
        self.number = number
        self._device = self._call("cuDeviceGet", number)
        self.name = _text(self._call("cuDeviceGetName", 256, self._device))
        self.context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self.make_current()
        if not self.attribute("COOPERATIVE_LAUNCH"):
            raise NoGpuError(f"--on cuda: {self.name} cannot launch cooperatively; a GPU from 2016 (Pascal) on can")

    def make_current(self) -> None:
        """What follows is about this GPU; a process with one GPU says it once."""
        self._call("cuCtxSetCurrent", self.context)

    def call(self, name: str, *arguments: object):
        """A call of the driver about this GPU; what it returns besides its status."""
        self.make_current()
        return self._call(name, *arguments)

    def attribute(self, name: str) -> int:
        """A number that the driver tells of the GPU."""
        key = getattr(self._driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return self._call("cuDeviceGetAttribute", key, self._device)

    @functools.cached_property
    def architecture(self) -> str:
        """What kernels are compiled for."""
        return f"sm_{self.attribute('COMPUTE_CAPABILITY_MAJOR')}{self.attribute('COMPUTE_CAPABILITY_MINOR')}"

    @functools.cached_property
    def sm_count(self) -> int:
        """Streaming multiprocessors."""
        return self.attribute("MULTIPROCESSOR_COUNT")

    @functools.cached_property
    def most_shared_bytes(self) -> int:
        """Shared memory that a block may ask for."""
        return self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    @functools.cached_property
    def whole_sm_bytes(self) -> int:
        """So much shared memory that no second block fits beside the first."""
        return min(self.most_shared_bytes, self.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") // 2 + 1024)

    @functools.cached_property
    def has_clusters(self) -> bool:
        """Whether blocks form clusters with distributed shared memory."""
        return int(self.architecture.removeprefix("sm_")) >= int(compiler.CLUSTERS_FROM.removeprefix("sm_"))

    @functools.cached_property
    def memory_bytes(self) -> int:
        """Of the whole GPU."""
        return self._call("cuDeviceTotalMem", self._device)

    @functools.cached_property
    def bus_id(self) -> str:
        """Where it is plugged in; NVML knows it by this name."""
        return _text(self._call("cuDeviceGetPCIBusId", _BUS_ID_BYTES, self._device))

    def environment(self) -> dict[str, object]:
        """What a reader must know of the GPU."""
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
        """Copy from the host, to the end of it."""
        self._call("cuMemcpyHtoD", address, host, nbytes)

    def copy_out(self, address: int, host: int, nbytes: int) -> None:
        """Copy to the host, to the end of it."""
        self._call("cuMemcpyDtoH", host, address, nbytes)

    def fill(self, address: int, word: int, words: int) -> None:
        """Start to overwrite memory with one 32-bit word."""
        self._call("cuMemsetD32Async", address, word, words, 0)

    def elapsed_ns(self, work: Callable[[], object]) -> float:
        """What `work` started takes on the GPU, by events before and behind it; they resolve half a microsecond."""
        first, last = self._events
        self._call("cuEventRecord", first, 0)
        work()
        self._call("cuEventRecord", last, 0)
        self._call("cuEventSynchronize", last)
        return self._call("cuEventElapsedTime", first, last) * 1e6

    @functools.cached_property
    def _events(self) -> tuple:
        return tuple(self._call("cuEventCreate", 0) for _ in range(2))

    @contextmanager
    def stream(self) -> Iterator[Stream]:
        """A queue of copies that no kernel holds up."""
        found = Stream(self._call)
        try:
            yield found
        finally:
            found.close()

    @property
    def host_stores(self) -> bool:
        """Whether the host can store into memory of the GPU without moving it."""
        return bool(self.attribute("DIRECT_MANAGED_MEM_ACCESS_FROM_HOST"))

    def allocate_window(self, nbytes: int) -> int:
        """Memory of the GPU that the host stores into; needs `host_stores`; `free` gives it back."""
        driver = self._driver
        address = int(
            self._call(
                "cuMemAllocManaged", max(nbytes, _LEAST_BYTES), int(driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL)
            )
        )
        advice = driver.CUmem_advise
        self._call("cuMemAdvise", address, nbytes, advice.CU_MEM_ADVISE_SET_PREFERRED_LOCATION, self._device)
        host = driver.CUdevice(driver.CU_DEVICE_CPU)
        self._call("cuMemAdvise", address, nbytes, advice.CU_MEM_ADVISE_SET_ACCESSED_BY, host)
        self._call("cuMemPrefetchAsync", address, nbytes, self._device, driver.CUstream(0))
        self.wait()
        return address

    @contextmanager
    def loaded(self, job: Job) -> Iterator[Loaded]:
        """The arrays of a job in the memory of the GPU, for as long as the context lasts."""
        loaded = Loaded(self, job)
        try:
            yield loaded
        finally:
            loaded.close()

    def start(self, job: Job, words: int, stream: object = 0) -> None:
        """Launch a kernel whose words lie at this address; does not wait for its end."""
        function = self._function(job)
        config = self._driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = job.blocks, 1, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = job.threads, 1, 1
        config.sharedMemBytes = job.shared_bytes
        config.hStream = stream
        config.attrs = self._attributes(job)
        config.numAttrs = len(config.attrs)
        if job.cluster > 1:
            self._check_clusters(job, int(self._call("cuOccupancyMaxActiveClusters", function, config) or 0))
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
        """Until everything that was started has ended."""
        self._call("cuCtxSynchronize")

    def _attributes(self, job: Job) -> list:
        driver, found = self._driver, []
        if job.cooperative:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
            attribute.value.cooperative = 1
            found.append(attribute)
        if job.cluster > 1:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attribute.value.clusterDim.x, attribute.value.clusterDim.y, attribute.value.clusterDim.z = job.cluster, 1, 1
            found.append(attribute)
        return found

    def _function(self, job: Job) -> object:
        """The kernel of a job, compiled, loaded and allowed the shared memory that it wants."""
        key = (job.source, job.defines)
        if key not in self._modules:
            code = compiler.cubin(job.source, self.architecture, job.defines)
            self._modules[key] = self._call("cuModuleLoadData", code)
        function = self._call("cuModuleGetFunction", self._modules[key], job.kernel.encode())
        kinds = self._driver.CUfunction_attribute
        if job.shared_bytes:
            kind = kinds.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._call("cuFuncSetAttribute", function, kind, job.shared_bytes)
        if job.cluster > 8:  # what every GPU with clusters can do needs no permission
            kind = kinds.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self._call("cuFuncSetAttribute", function, kind, 1)
        return function

    def _call(self, name: str, *arguments: object):
        """One call of the driver; what it returns besides its status."""
        status, *values = getattr(self._driver, name)(*arguments)
        if int(status):
            _, message = self._driver.cuGetErrorString(status)
            said = _text(message) if message else status.name
            raise CudaError(f"{getattr(self, 'name', 'GPU')}: {name} failed ({status.name}): {said}")
        return values[0] if len(values) == 1 else tuple(values) or None


class Stream:
    """What a GPU does one after the other, beside its default stream and not behind it."""

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
        """Until everything has ended."""
        self._call("cuStreamSynchronize", self.handle)

    def close(self) -> None:
        """Give the queue back."""
        self._call("cuStreamDestroy", self.handle)


class Loaded:
    """A job whose arrays lie in the memory of the GPU."""

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
        """The file of its kernel."""
        return self._job.source

    def run(self) -> None:
        """One launch, to its end."""
        self.start()
        self._device.wait()

    def start(self, stream: object = 0) -> None:
        """One launch; `wait` of the device ends it."""
        self._device.start(self._job, self._at, stream)

    def address(self, name: str) -> int:
        """Where an array lies."""
        return self._addresses[name]

    def read(self, name: str) -> np.ndarray:
        """What an array holds now."""
        return self._device.read(self._addresses[name], self._job.words[name])

    def write(self, name: str, array: np.ndarray) -> None:
        """Overwrite an array."""
        self._device.write(self._addresses[name], array)

    def number(self, name: str) -> int:
        """A word that is a number, as it is now."""
        return int(self._words[list(self._job.words).index(name)])

    def set(self, name: str, number: int) -> None:
        """Change a word that is a number."""
        self._words[list(self._job.words).index(name)] = number
        self._device.write(self._at, self._words)

    def restore(self, *names: str) -> None:
        """Give arrays the contents again that the job came with."""
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


def _text(value: bytes) -> str:
    return value.decode(errors="replace").strip("\0 ")
