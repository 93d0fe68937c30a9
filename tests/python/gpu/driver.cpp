// A libcuda.so.1 whose GPU is CPU threads, for tests of everything between the command line and the driver.
//
// It has the calls that linkwright makes, with the structures of cuda.h, and looks kernels up by name; the machine
// code that it is given is real, and ignored. Blocks have two threads, however many are asked for, but where threads
// are counted.
// Nothing of it is installed: a number that it gives is no measurement.
#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include "kernels.h"
#include "queues.h"

enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_FOUND = 500, PEER_ALREADY = 704, PEER_NOT = 705, LAUNCH_TIMEOUT = 702,
       NOT_SUPPORTED = 801 };

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

extern "C" {

int cuGetProcAddress_v2(const char *name, void **function, int, u64, int *status) {
    *function = dlsym(RTLD_DEFAULT, name);
    if (!*function) {
        static void *self = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
        *function = dlsym(self, name);
    }
    if (status) *status = *function ? 0 : 1;
    return *function ? SUCCESS : NOT_FOUND;
}

// NVRTC asks for tables of its own here, and does without.
int cuGetExportTable(const void **table, const void *) { return *table = nullptr, NOT_FOUND; }

int cuInit(u32) { return getenv("FAKE_GPU_NONE") ? 100 : SUCCESS; }
int cuDriverGetVersion(int *version) { return *version = 12090, SUCCESS; }
int cuDeviceGetCount(int *count) {
    const char *asked = getenv("FAKE_GPUS");
    return *count = asked ? atoi(asked) : 1, SUCCESS;
}
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
        {75, 9},        {76, 0},       {81, 128 << 10}, {95, 1}, {97, 100000}, {101, 1},
    };
    const auto found = known.find(attribute);
    if (found == known.end()) return INVALID_VALUE;
    *value = found->second;
    return SUCCESS;
}

// A context is 0x10 + its device.
static u64 current = 0;
static u64 device_of(const void *context) { return (u64)context - 0x10; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return *context = (void *)(0x10ull + device), SUCCESS; }
int cuCtxSetCurrent(void *context) { return current = device_of(context), SUCCESS; }
int cuCtxSynchronize() {
    for (auto &thread : running) thread.join();
    running.clear();
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
    if (memcmp(image, "\x7f" "ELF", 4)) return 200;
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
int cuFuncSetAttribute(void *, int, int) { return SUCCESS; }

// Which device holds an address: by the begin of each allocation.
static std::map<u64, u64> owners;
static u64 owner(u64 address) {
    const auto after = owners.upper_bound(address);
    return after == owners.begin() ? ~0ull : std::prev(after)->second;
}
int cuMemAlloc(u64 *address, size_t bytes) {
    *address = (u64)aligned_alloc(256, (bytes + 255) / 256 * 256);
    owners[*address] = current;
    return *address ? SUCCESS : OUT_OF_MEMORY;
}
int cuMemFree(u64 address) { return owners.erase(address), free((void *)address), SUCCESS; }
int cuMemcpyHtoD(u64 to, const void *from, size_t bytes) { return memcpy((void *)to, from, bytes), SUCCESS; }
int cuMemcpyDtoH(void *to, u64 from, size_t bytes) { return memcpy(to, (const void *)from, bytes), SUCCESS; }

int cuMemAllocManaged(u64 *address, size_t bytes, u32 flags) { return flags == 1 ? cuMemAlloc(address, bytes) : INVALID_VALUE; }
int cuMemAdvise(u64, size_t, int advice, int device) {
    return (advice == 3 && device == 0) || (advice == 5 && device == -1) ? SUCCESS : INVALID_VALUE;
}
int cuMemPrefetchAsync(u64, size_t, int device, void *) { return device == 0 ? SUCCESS : INVALID_VALUE; }

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
    if (owner(to) != device_of(there) || owner(from) != device_of(here)) return INVALID_VALUE;
    stream->add([=] { memmove((void *)to, (const void *)from, bytes); });
    return SUCCESS;
}
int cuMemcpyHtoDAsync(u64 to, const void *from, size_t bytes, void *) { return cuMemcpyHtoD(to, from, bytes); }
int cuMemcpyDtoHAsync(void *to, u64 from, size_t bytes, void *) { return cuMemcpyDtoH(to, from, bytes); }

int cuMemsetD32Async(u64 to, u32 word, size_t count, void *) {
    std::fill_n((u32 *)to, count, word);
    return SUCCESS;
}

int cuEventCreate(void **event, u32) { return *event = new queues::Event, SUCCESS; }
int cuEventDestroy(queues::Event *event) { return delete event, SUCCESS; }
int cuEventRecord(queues::Event *event, queues::Stream *stream) {
    const u64 number = ++event->asked;
    const auto record = [=] { event->time = std::chrono::steady_clock::now(), event->done = number; };
    if (stream) return stream->add(record), SUCCESS;
    // What was started on no stream has ended when the call returns, kernels aside.
    cuCtxSynchronize();
    return record(), SUCCESS;
}
int cuEventSynchronize(void *) { return queues::drain() ? SUCCESS : LAUNCH_TIMEOUT; }
int cuEventElapsedTime(float *ms, queues::Event *first, queues::Event *last) {
    *ms = std::chrono::duration<float, std::milli>(last->time - first->time).count();
    return SUCCESS;
}

int cuMemHostAlloc(void **address, size_t bytes, u32) { return cuMemAlloc((u64 *)address, bytes); }
int cuMemFreeHost(void *address) { return free(address), SUCCESS; }
int cuMemHostGetDevicePointer(u64 *seen, void *address, u32) { return *seen = (u64)address, SUCCESS; }

int cuLaunchKernelEx(const Config *config, void *function, void **parameters, void **) {
    u32 cluster = 1;
    bool cooperative = false;
    for (u32 i = 0; i < config->count; ++i) {
        if (config->attributes[i].id == 2) cooperative = config->attributes[i].value.cooperative;
        if (config->attributes[i].id == 4) cluster = config->attributes[i].value.cluster.x;
    }
    if (cooperative && config->grid_x > SMS) return 720;
    if (config->grid_x % cluster || config->shared > 100000) return INVALID_VALUE;
    const void *words = *(const void **)parameters[0];
    const bool counted = function == (void *)kernels.at("atomic_add");
    const u32 blocks = config->grid_x, asked = config->block_x;
    const u32 threads = counted || asked < THREADS ? asked : THREADS;
    const u32 shared = config->shared;
    const auto launch = [=] { shim::launch((shim::Kernel)function, words, blocks, threads, shared, cluster, SMS); };
    if (const auto stream = (queues::Stream *)config->stream) {
        const u64 *given = (const u64 *)words;  // of `combine_pieces`: where to, where from
        if (current != stream->device || owner((u64)words) != current) return INVALID_VALUE;
        if (owner(given[0]) != current || owner(given[1]) != current) return INVALID_VALUE;
        return stream->add(launch), SUCCESS;
    }
    running.emplace_back(launch);
    return SUCCESS;
}

// A cluster of this GPU is at most half of it.
int cuOccupancyMaxActiveClusters(int *clusters, void *, const Config *config) {
    const u32 blocks = config->attributes[0].value.cluster.x;
    *clusters = blocks <= SMS / 2 ? SMS / blocks : 0;
    return SUCCESS;
}

int cuGetErrorString(int, const char **text) { return *text = "said by the driver of the tests", SUCCESS; }
}
