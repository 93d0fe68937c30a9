// The data-movement calls that the kernel uses, on CPU threads: one thread for each processor of a core.
//
// Writes and reads are carried out late, in any order, at the latest at their barrier; a write reads its source then.
// So a missing barrier, or a source that is overwritten too early, leaves wrong data or a race that a sanitizer sees.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sched.h>
#include <vector>

#define WALK_ON_HOST 1
#define tt_l1_ptr

namespace shim {

const uint32_t BASE = 0x10000;  // of a row in the L1 of every core

struct Transfer {
    uint8_t *to;
    const uint8_t *from;
    uint32_t bytes;
};

struct Chip {
    uint32_t columns, lines, row_bytes;
    std::vector<uint8_t *> rows;  // by core, line by line
};

inline Chip chip;
inline thread_local uint32_t core, processor, state;
inline thread_local const uint32_t *arguments;
inline thread_local std::vector<Transfer> writes, reads;

[[noreturn]] inline void refuse(const char *what, uint64_t value) {
    std::fprintf(stderr, "core %u, processor %u: %s (%#llx)\n", core, processor, what, (unsigned long long)value);
    std::_Exit(70);  // others still run, and need what an orderly end destroys
}

inline uint8_t *l1(uint32_t of, uint32_t address, uint32_t bytes) {
    if (address < BASE || address - BASE + bytes > chip.row_bytes) refuse("an address outside the row", address);
    return chip.rows[of] + (address - BASE);
}

// Coordinates of the chip: logical ones plus 1 and plus 2, so that nobody mixes them up.
inline uint32_t core_at(uint32_t x, uint32_t y) {
    if (x < 1 || x > chip.columns || y < 2 || y > chip.lines + 1) refuse("no such core", x << 16 | y);
    return x - 1 + (y - 2) * chip.columns;
}

inline uint32_t draw(uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
}

inline void carry_out(std::vector<Transfer> &waiting, bool all) {
    while (!waiting.empty() && (all || draw(3) == 0)) {
        const uint32_t number = draw(waiting.size());
        const Transfer now = waiting[number];
        waiting.erase(waiting.begin() + number);
        std::memcpy(now.to, now.from, now.bytes);
    }
}

inline void queue(std::vector<Transfer> &waiting, uint8_t *to, const uint8_t *from, uint32_t bytes) {
    if (!bytes) refuse("a transfer of no bytes", 0);
    if (((uintptr_t)to - (uintptr_t)from) & 15) refuse("addresses differ modulo 16", (uintptr_t)to);
    waiting.push_back({to, from, bytes});
    carry_out(waiting, false);
}

}  // namespace shim

#define noc_index shim::processor

typedef volatile uint32_t *Words;

template <class T> inline T get_arg_val(uint32_t number) { return shim::arguments[number]; }

// What lies there may be a single byte; rows end where their memory does, so the address sanitizer sees the rest.
inline Words words_at(uint32_t address) { return (Words)shim::l1(shim::core, address, 1); }

inline uint32_t look(uint32_t address) {
    sched_yield();
    return __atomic_load_n((uint32_t *)shim::l1(shim::core, address, 4), __ATOMIC_ACQUIRE);
}

// A cycle of 10 us, so that patience does not end because the host is busy; no two calls give the same.
inline uint64_t now() {
    thread_local uint64_t last;
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    sched_yield();
    const uint64_t found = time.tv_sec * 100000ull + time.tv_nsec / 10000;
    return last = found > last ? found : last + 1;
}

inline uint64_t get_noc_addr(uint32_t x, uint32_t y, uint32_t address) {
    return (uint64_t)shim::core_at(x, y) << 32 | address;
}

inline uint64_t get_noc_multicast_addr(uint32_t x0, uint32_t y0, uint32_t x1, uint32_t y1, uint32_t address) {
    const bool back = noc_index == 1;
    const uint64_t first = shim::core_at(back ? x1 : x0, back ? y1 : y0), last = shim::core_at(back ? x0 : x1, back ? y0 : y1);
    if (first % shim::chip.columns > last % shim::chip.columns || first > last) shim::refuse("corners in the wrong order", first);
    return first << 48 | last << 32 | address;
}

inline void noc_async_write(uint32_t from, uint64_t to, uint32_t bytes) {
    shim::queue(shim::writes, shim::l1(to >> 32, (uint32_t)to, bytes), shim::l1(shim::core, from, bytes), bytes);
}

inline void noc_async_read(uint64_t from, uint32_t to, uint32_t bytes) {
    shim::queue(shim::reads, shim::l1(shim::core, to, bytes), shim::l1(from >> 32, (uint32_t)from, bytes), bytes);
}

inline void multicast_to(uint32_t from, uint64_t to, uint32_t bytes, uint32_t wanted, bool own) {
    const uint32_t first = to >> 48, last = to >> 32 & 0xFFFF, columns = shim::chip.columns;
    for (uint32_t y = first / columns; y <= last / columns; ++y)
        for (uint32_t x = first % columns; x <= last % columns; ++x) {
            const uint32_t target = x + y * columns;
            if (target == shim::core) {
                if (!own) shim::refuse("a multicast that includes its sender", target);
                --wanted;  // in place: nothing to do
                if (from != (uint32_t)to) shim::refuse("a multicast to itself that is not in place", from);
                continue;
            }
            --wanted;
            noc_async_write(from, (uint64_t)target << 32 | (uint32_t)to, bytes);
        }
    if (wanted) shim::refuse("a multicast with a wrong number of targets", wanted);
}

inline void noc_async_write_multicast(uint32_t from, uint64_t to, uint32_t bytes, uint32_t count) {
    multicast_to(from, to, bytes, count, false);
}

inline void noc_async_write_multicast_loopback_src(uint32_t from, uint64_t to, uint32_t bytes, uint32_t count) {
    multicast_to(from, to, bytes, count, true);
}

inline void noc_async_write_barrier() { shim::carry_out(shim::writes, true); }
inline void noc_async_read_barrier() { shim::carry_out(shim::reads, true); }
inline void noc_async_atomic_barrier() {}

inline void noc_semaphore_inc(uint64_t to, uint32_t by) {
    if (to & 15) shim::refuse("a counter that is not aligned to 16 bytes", to);
    __atomic_fetch_add((uint32_t *)shim::l1(to >> 32, (uint32_t)to, 4), by, __ATOMIC_RELEASE);
}
