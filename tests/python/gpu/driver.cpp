// A libcuda.so.1 whose GPU is CPU threads, for tests of everything between the command line and the driver.
//
// It has the calls that linkwright makes, with the structures of cuda.h, and looks kernels up by name; the machine
// code that it is given is real, and ignored. Blocks have two threads, however many are asked for, but where threads
// are counted. What the driver's documentation forbids it refuses: memory that was not allocated, kernels that were
// not permitted their shared memory or their cluster, events of another GPU or without a time, a context that was given
// back, a call newer than the driver. Small copies from pageable memory arrive as late as they may.
// Nothing of it is installed: a number that it gives is no measurement.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include "kernels.h"
#include "queues.h"

enum {
    SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, UNAVAILABLE = 46, NO_DEVICE = 100, INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201, INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, LAUNCH_TIMEOUT = 702, PEER_ALREADY = 704,
    PEER_NOT = 705, ILLEGAL_ADDRESS = 700, LAUNCH_TOO_LARGE = 720, INVALID_CLUSTER_SIZE = 912
};

static const u32 SMS = 12, THREADS = 2;
static std::vector<std::thread> running;

struct Attribute {
    u32 id;
    u32 pad;
    union {
        char bytes[64];
        int cooperative;
        struct { u32 x, y, z; } cluster;
    } value;
};

struct Config {
    u32 grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
    void *stream;
    Attribute *attributes;
    u32 count;
};

static int number_of(const char *variable, int otherwise) {
    const char *asked = getenv(variable);
    return asked ? atoi(asked) : otherwise;
}
// As cuDriverGetVersion says it: 1000 x major + 10 x minor.
static int version() { return number_of("FAKE_DRIVER_CUDA", 13020); }

extern "C" {

// A name has several forms, each from a version of CUDA on.
int cuGetProcAddress_v2(const char *name, void **function, int wanted, u64, int *status) {
    static const std::map<std::string, int> second = {
        {"cuMemAdvise", 12020}, {"cuMemPrefetchAsync", 12020}, {"cuGetProcAddress", 12000}, {"cuEventElapsedTime", 12080},
    };
    const auto found = second.find(name);
    const bool newer = found != second.end() && wanted >= found->second;
    static void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    *function = wanted > version() ? nullptr : dlsym(self, (std::string(name) + (newer ? "_v2" : "")).c_str());
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}

// NVRTC asks for tables of its own here, and does without.
int cuGetExportTable(const void **table, const void *) { return *table = nullptr, NOT_FOUND; }

int cuInit(u32) { return number_of("FAKE_INIT", SUCCESS); }
int cuDriverGetVersion(int *found) { return *found = version(), SUCCESS; }
int cuDeviceGetCount(int *count) { return *count = number_of("FAKE_GPUS", 1), SUCCESS; }
int cuDeviceGet(int *device, int number) { return *device = number, SUCCESS; }
int cuDeviceGetName(char *name, int length, int) {
    snprintf(name, length, "CPU threads behind the driver's interface");
    return SUCCESS;
}
int cuDeviceTotalMem(size_t *bytes, int) { return *bytes = 1ull << 30, SUCCESS; }
int cuDeviceGetPCIBusId(char *name, int length, int device) {
    snprintf(name, length, "0000:%02d:00.0", device);
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int) {
    static const std::map<int, int> known = {
        {8, 48 << 10},  {13, 2000000}, {16, SMS}, {36, 1000000}, {38, 1 << 20},
        {75, number_of("FAKE_CAPABILITY", 90) / 10}, {76, number_of("FAKE_CAPABILITY", 90) % 10},
        {81, 128 << 10}, {95, 1}, {97, 100000}, {101, 1},
    };
    const auto found = known.find(attribute);
    if (found == known.end()) return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}

// A context is 0x10 + its device; the second process that wants one waits in vain where FAKE_EXCLUSIVE names a file.
static const u64 NONE = ~0ull;
static thread_local u64 current = NONE;
static std::map<u64, int> retained;
static int exclusive = -1;
static bool broken = false;  // by a kernel: nothing works in this process any more
static u64 device_of(const void *context) { return (u64)context - 0x10; }
static bool usable() { return retained[current] > 0 && !broken; }
static int unusable() { return broken ? ILLEGAL_ADDRESS : INVALID_CONTEXT; }
int cuDevicePrimaryCtxRetain(void **context, int device) {
    if (const char *file = getenv("FAKE_EXCLUSIVE"); file && exclusive < 0) {
        exclusive = open(file, O_CREAT | O_RDWR, 0600);
        if (flock(exclusive, LOCK_EX | LOCK_NB)) return UNAVAILABLE;
    }
    ++retained[device];
    return *context = (void *)(0x10ull + device), SUCCESS;
}
int cuDevicePrimaryCtxRelease(int device) {
    if (!retained[device]) return INVALID_CONTEXT;
    if (!--retained[device] && exclusive >= 0) close(exclusive), exclusive = -1;
    return SUCCESS;
}
int cuCtxSetCurrent(void *context) { return current = device_of(context), usable() ? SUCCESS : unusable(); }

// What a copy from pageable memory has taken, but not yet brought to the GPU.
static std::vector<std::function<void()>> late;
static void arrive() {
    for (const auto &copy : late) copy();
    late.clear();
}
int cuCtxSynchronize() {
    if (!usable()) return unusable();
    arrive();
    for (auto &thread : running) thread.join();
    running.clear();
    if (broken) return ILLEGAL_ADDRESS;
    return queues::drain() ? SUCCESS : LAUNCH_TIMEOUT;
}

static std::map<std::pair<u64, u64>, bool> opened;  // by (device, peer)
int cuDeviceCanAccessPeer(int *can, int, int) { return *can = !getenv("FAKE_NO_PEER"), SUCCESS; }
int cuCtxEnablePeerAccess(void *peer, u32) {
    bool &enabled = opened[{current, device_of(peer)}];
    return enabled ? PEER_ALREADY : (enabled = true, SUCCESS);
}
int cuCtxDisablePeerAccess(void *peer) {
    bool &enabled = opened[{current, device_of(peer)}];
    return enabled ? (enabled = false, SUCCESS) : PEER_NOT;
}

int cuModuleLoadData(void **module, const void *image) {
    if (!usable()) return unusable();
    // Machine code says by the version of its format which CUDA made it: 7 of 12, 8 of 13. PTX is text.
    const bool code = !memcmp(image, "\x7f" "ELF", 4);
    if (code ? ((const u8 *)image)[8] + 5 > version() / 1000 : !strstr((const char *)image, ".target")) return INVALID_IMAGE;
    if (!queues::drain()) return LAUNCH_TIMEOUT;  // loading may wait for all queues, and one of them for the host
    *module = (void *)0x20;
    return SUCCESS;
}
int cuModuleGetFunction(void **function, void *, const char *name) {
    const auto found = kernels.find(name);
    if (found == kernels.end()) return NOT_FOUND;
    *function = (void *)found->second;
    return SUCCESS;
}
static const int SHARED_BYTES = 8, BIG_CLUSTER = 14, SHARED_FOR_ALL = 48 << 10, CLUSTER_FOR_ALL = 8;
static std::map<std::pair<void *, int>, int> permitted;  // by (kernel, attribute)
int cuFuncSetAttribute(void *function, int attribute, int value) {
    if (attribute == SHARED_BYTES && value > 100000) return INVALID_VALUE;
    return permitted[{function, attribute}] = value, SUCCESS;
}

// Which device holds an address: by the begin of each allocation; memory of the host is nobody's.
struct Held {
    u64 bytes, owner;
    bool mapped;
};
static std::map<u64, Held> allocated;
static const Held *holder(u64 address, u64 bytes = 1) {
    const auto after = allocated.upper_bound(address);
    if (after == allocated.begin()) return nullptr;
    const auto found = std::prev(after);
    return address + bytes <= found->first + found->second.bytes ? &found->second : nullptr;
}
static u64 owner(u64 address, u64 bytes = 1) {
    const Held *found = holder(address, bytes);
    return found ? found->owner : NONE;
}
static bool on_gpu(u64 address, u64 bytes) { return owner(address, bytes) != NONE; }
static u64 taken(u64 alignment, size_t bytes, u64 owner, bool mapped = false) {
    const u64 address = (u64)aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (address) allocated[address] = {bytes, owner, mapped};
    return address;
}
static int given_back(u64 address, bool of_gpu) {
    const auto found = allocated.find(address);
    if (found == allocated.end() || (found->second.owner != NONE) != of_gpu) return INVALID_VALUE;
    arrive();
    allocated.erase(found);
    return free((void *)address), SUCCESS;
}
int cuMemAlloc(u64 *address, size_t bytes) {
    if (!usable()) return unusable();
    if (!bytes) return INVALID_VALUE;
    return (*address = taken(256, bytes, current)) ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFree(u64 address) { return given_back(address, true); }
int cuMemcpyHtoD(u64 to, const void *from, size_t bytes) {
    if (!usable()) return unusable();
    if (!on_gpu(to, bytes)) return INVALID_VALUE;
    arrive();
    if (bytes > 64 << 10 || holder((u64)from)) return memcpy((void *)to, from, bytes), SUCCESS;
    const std::string buffer((const char *)from, bytes);
    return late.push_back([=] { memcpy((void *)to, buffer.data(), bytes); }), SUCCESS;
}
int cuMemcpyDtoH(void *to, u64 from, size_t bytes) {
    if (!usable()) return unusable();
    if (!on_gpu(from, bytes)) return INVALID_VALUE;
    return arrive(), memcpy(to, (const void *)from, bytes), SUCCESS;
}

struct Location {
    int type, id;  // 1: a device, 2: the host
};
int cuMemAllocManaged(u64 *address, size_t bytes, u32 flags) { return flags == 1 ? cuMemAlloc(address, bytes) : INVALID_VALUE; }
int cuMemAdvise_v2(u64, size_t, int advice, Location where) {
    return (advice == 3 && where.type == 1 && where.id == 0) || (advice == 5 && where.type == 2) ? SUCCESS : INVALID_VALUE;
}
int cuMemPrefetchAsync_v2(u64, size_t, Location where, u32 flags, void *) {
    return where.type == 1 && where.id == 0 && !flags ? SUCCESS : INVALID_VALUE;
}

int cuStreamCreate(void **stream, u32 flags) {
    queues::streams.push_back(new queues::Stream{(u32)current, {}});
    return *stream = queues::streams.back(), flags == 1 ? SUCCESS : INVALID_VALUE;
}
int cuStreamSynchronize(void *) { return queues::drain() ? SUCCESS : LAUNCH_TIMEOUT; }
int cuStreamDestroy(void *stream) {
    std::erase(queues::streams, (queues::Stream *)stream);
    return SUCCESS;
}
int cuStreamWaitEvent(queues::Stream *stream, queues::Event *event, u32) {
    const u64 wanted = event->asked;  // of an event that nobody recorded: nothing
    stream->add([] {}, [=] { return event->done >= wanted; });
    return SUCCESS;
}
int cuStreamWaitValue32(queues::Stream *stream, u64 address, u32 value, u32 flags) {
    if (flags) return INVALID_VALUE;
    stream->add([] {}, [=] { return (i32)(*(volatile u32 *)address - value) >= 0; });
    return SUCCESS;
}
int cuLaunchHostFunc(queues::Stream *stream, void (*function)(void *), void *given) {
    stream->add([=] { function(given); });
    return SUCCESS;
}
int cuMemcpyDtoDAsync(u64 to, u64 from, size_t bytes, queues::Stream *stream) {
    if (owner(to) != stream->device || owner(from) != stream->device) return INVALID_VALUE;
    stream->add([=] { memmove((void *)to, (const void *)from, bytes); });
    return SUCCESS;
}
int cuMemcpyPeerAsync(u64 to, void *there, u64 from, void *here, size_t bytes, queues::Stream *stream) {
    if (owner(to, bytes) != device_of(there) || owner(from, bytes) != device_of(here)) return INVALID_VALUE;
    stream->add([=] { memmove((void *)to, (const void *)from, bytes); });
    // Through the host: where its buffers are full, the call waits for the queue.
    const bool closed = device_of(there) != device_of(here) && !opened[{device_of(here), device_of(there)}];
    for (int ms = 0; closed && getenv("FAKE_STAGING_WAITS") && !stream->entries.empty(); ++ms) {
        if (ms > 20000) return LAUNCH_TIMEOUT;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        queues::drain();
    }
    return SUCCESS;
}
// Copies of a stream are done at once: in the tests nothing but them and kernels that stay is on such a stream.
int cuMemcpyHtoDAsync(u64 to, const void *from, size_t bytes, void *) {
    return on_gpu(to, bytes) ? memcpy((void *)to, from, bytes), SUCCESS : INVALID_VALUE;
}
int cuMemcpyDtoHAsync(void *to, u64 from, size_t bytes, void *) {
    return on_gpu(from, bytes) ? memcpy(to, (const void *)from, bytes), SUCCESS : INVALID_VALUE;
}

int cuMemsetD32Async(u64 to, u32 word, size_t count, void *) {
    if (!on_gpu(to, 4 * count)) return INVALID_VALUE;
    arrive();
    std::fill_n((u32 *)to, count, word);
    return SUCCESS;
}

static const u32 NO_TIME = 2;
int cuEventCreate(void **event, u32 flags) {
    if (!usable()) return unusable();
    return *event = new queues::Event{.device = (u32)current, .timed = !(flags & NO_TIME)}, SUCCESS;
}
int cuEventDestroy(queues::Event *event) { return delete event, SUCCESS; }
int cuEventRecord(queues::Event *event, queues::Stream *stream) {
    if (!usable()) return unusable();
    if (event->device != (stream ? stream->device : current)) return INVALID_HANDLE;
    const u64 number = ++event->asked;
    const auto record = [=] { event->time = std::chrono::steady_clock::now(), event->done = number; };
    if (stream) return stream->add(record), SUCCESS;
    // What was started on no stream has ended when the call returns, kernels aside.
    cuCtxSynchronize();
    return record(), SUCCESS;
}
int cuEventSynchronize(void *) { return queues::drain() ? SUCCESS : LAUNCH_TIMEOUT; }
int cuEventElapsedTime(float *ms, queues::Event *first, queues::Event *last) {
    if (!first->timed || !last->timed || !first->asked || !last->asked || first->device != last->device) return INVALID_HANDLE;
    if (first->done < first->asked || last->done < last->asked) return NOT_READY;
    *ms = std::chrono::duration<float, std::milli>(last->time - first->time).count();
    return SUCCESS;
}

int cuEventElapsedTime_v2(float *ms, queues::Event *first, queues::Event *last) { return cuEventElapsedTime(ms, first, last); }

int cuMemHostAlloc(void **address, size_t bytes, u32 flags) {
    if (!usable()) return unusable();
    if (!bytes || flags & ~7u) return INVALID_VALUE;
    return (*address = (void *)taken(4096, bytes, NONE, flags & 2)) ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFreeHost(void *address) { return given_back((u64)address, false); }
int cuMemHostGetDevicePointer(u64 *seen, void *address, u32) {
    const Held *found = holder((u64)address);
    return found && found->mapped ? *seen = (u64)address, SUCCESS : INVALID_VALUE;
}

int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **) {
    u32 cluster = 1;
    bool cooperative = false;
    for (u32 i = 0; i < config->count; ++i) {
        if (config->attributes[i].id == 2) cooperative = config->attributes[i].value.cooperative;
        if (config->attributes[i].id == 4) cluster = config->attributes[i].value.cluster.x;
    }
    if (!usable()) return unusable();
    if (cooperative && config->grid_x > SMS) return LAUNCH_TOO_LARGE;
    if (config->grid_x % cluster || config->block_x > 1024 || config->block_x * config->grid_x == 0) return INVALID_VALUE;
    if ((int)config->shared > std::max(SHARED_FOR_ALL, permitted[{function, SHARED_BYTES}])) return INVALID_VALUE;
    if (cluster > CLUSTER_FOR_ALL && !permitted[{function, BIG_CLUSTER}]) return INVALID_CLUSTER_SIZE;
    const void *words = *(const void **)parameters[0];
    if (owner((u64)words) != current) return INVALID_VALUE;
    const bool counted = function == (void *)kernels.at("atomic_add");
    const u32 blocks = config->grid_x, asked = config->block_x;
    const u32 threads = counted || asked < THREADS ? asked : THREADS;
    const u32 shared = config->shared;
    const auto launch = [=] { shim::launch((shim::Kernel)function, words, blocks, threads, shared, cluster, SMS); };
    if (const auto stream = (queues::Stream *)config->stream) {
        const u64 *given = (const u64 *)words;  // of `combine_pieces`: where to, where from
        if (current != stream->device) return INVALID_CONTEXT;
        if (owner(given[0]) != current || owner(given[1]) != current) return INVALID_VALUE;
        return stream->add(launch), SUCCESS;
    }
    arrive();
    if (getenv("FAKE_BREAKS_AT") && function == (void *)kernels.at(getenv("FAKE_BREAKS_AT"))) return broken = true, SUCCESS;
    running.emplace_back(launch);
    return SUCCESS;
}

// A cluster of this GPU is at most half of it.
int cuOccupancyMaxActiveClusters(int *clusters, void *function, const Config *config) {
    const u32 blocks = config->attributes[0].value.cluster.x;
    if (blocks > CLUSTER_FOR_ALL && !permitted[{function, BIG_CLUSTER}]) return INVALID_CLUSTER_SIZE;
    *clusters = blocks <= SMS / 2 ? SMS / blocks : 0;
    return SUCCESS;
}

int cuGetErrorString(int, const char **text) { return *text = "said by the driver of the tests", SUCCESS; }
}
