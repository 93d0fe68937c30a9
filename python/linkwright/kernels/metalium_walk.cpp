// A schedule on the cores of a Tenstorrent chip: each data-movement processor walks a program in its own L1.
//
// The host (`executors/metalium/lower.py`) writes one row of bytes into the L1 of every core, at the same address:
//
//     head | counters | stamps | programs | data | landings
//
//     head       start (2 words), offset of this clock from that of rank 0 (2), margin, patience, repetitions,
//                bytes of stamps in a repetition, then what each processor gave up on (4 words each): what, counter, wanted, found
//     counter    16 bytes: how many notices have come, and how many come in a repetition
//     stamps     by repetition: times of this processor, 2 words each; the first is its start, the second its end
//     program    instructions of 4 words; the lowest byte of the first is the code
//
// A core writes into the memory of others over the network, and raises a counter there once its data have landed. It
// cannot combine into the memory of others: such data come to a landing of their own, and their target combines them.
// Counters only grow. The first rank chooses the time at which all start, by its own clock.
//
// A processor that waits longer than its patience records what for and goes on to its end, so that a wrong schedule
// cannot hang a board. `tests/python/metalium/shim` runs this source on CPU threads.
#include "api/dataflow/dataflow_api.h"

#if !defined(WALK_ON_HOST)
typedef volatile tt_l1_ptr uint32_t *Words;

static inline Words words_at(uint32_t address) { return (Words)address; }

// A word that another core changes.
static inline uint32_t look(uint32_t address) {
    invalidate_l1_cache();
    return *words_at(address);
}

static inline uint64_t now() {
    const uint32_t low = *(volatile tt_reg_ptr uint32_t *)RISCV_DEBUG_REG_WALL_CLOCK_L;  // freezes the upper half
    return (uint64_t)*(volatile tt_reg_ptr uint32_t *)RISCV_DEBUG_REG_WALL_CLOCK_H << 32 | low;
}
#endif

enum Code : uint32_t {
    END, WAIT, WRITE, LANDED, RAISE, COMBINE, COPY, MULTICAST, MULTICAST_TOO, READ, FETCHED, CHOOSE, ANNOUNCE, BEGIN,
    STAMP, COMPUTE
};

// Words of the head.
enum Head : uint32_t { START = 0, OFFSET = 2, MARGIN = 4, PATIENCE = 5, REPETITIONS = 6, STRIDE = 7, TROUBLE = 8 };
// What a processor gave up on.
enum Trouble : uint32_t { NONE, NOTICE, CLOCK };
// Runtime arguments; tables of coordinates by logical column and line follow.
enum Argument : uint32_t { ROW, COUNTERS, STAMPS, PROGRAM, DATA, PROCESSOR, COLUMNS, LINES = COLUMNS + 16 };

static inline uint32_t column(uint32_t x) { return get_arg_val<uint32_t>(COLUMNS + (x & 15)); }

static inline uint32_t line(uint32_t y) { return get_arg_val<uint32_t>(LINES + (y & 15)); }

// An address of another core; a place is its logical column and line, a byte each.
static inline uint64_t at(uint32_t place, uint32_t address) {
    return get_noc_addr(column(place), line(place >> 8), address);
}

// WALK_TYPE is float, double, int32_t, int64_t, uint8_t, or with WALK_BF16 uint16_t; WALK_OP counts sum, max, min, prod.
typedef WALK_TYPE Element;

template <class T> static inline T combined(T a, T b) {
#if WALK_OP == 1
    return b > a ? b : a;
#elif WALK_OP == 2
    return b < a ? b : a;
#elif WALK_INTEGER && WALK_OP == 0
    T sum;
    (void)__builtin_add_overflow(a, b, &sum);  // wraps
    return sum;
#elif WALK_INTEGER
    T product;
    (void)__builtin_mul_overflow(a, b, &product);
    return product;
#elif WALK_OP == 0
    return a + b;
#else
    return a * b;
#endif
}

#if WALK_BF16
static inline float widen(Element bits) { return __builtin_bit_cast(float, (uint32_t)bits << 16); }

static inline Element combine(Element a, Element b) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, combined(widen(a), widen(b)));
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;  // to nearest, ties to even
}
#else
static inline Element combine(Element a, Element b) { return combined(a, b); }
#endif

template <class T> static inline volatile tt_l1_ptr T *elements_at(uint32_t address) {
    return (volatile tt_l1_ptr T *)words_at(address);
}

template <class T> static inline void copy(uint32_t to, uint32_t from, uint32_t bytes) {
    volatile tt_l1_ptr T *into = elements_at<T>(to), *given = elements_at<T>(from);
    for (uint32_t i = 0; i < bytes / sizeof(T); ++i) into[i] = given[i];
}

static inline bool give_up(uint32_t what, uint32_t counter, uint32_t wanted, uint32_t found) {
    const Words trouble = words_at(get_arg_val<uint32_t>(ROW)) + TROUBLE + 4 * get_arg_val<uint32_t>(PROCESSOR);
    trouble[1] = counter;
    trouble[2] = wanted;
    trouble[3] = found;
    trouble[0] = what;
    return false;
}

static inline bool reach(uint32_t address, uint32_t number, uint32_t wanted) {
    const uint32_t patience = words_at(get_arg_val<uint32_t>(ROW))[PATIENCE];
    uint32_t looks = 0, began = 0;
    for (;;) {
        const uint32_t found = look(address);
        if ((int32_t)(found - wanted) >= 0) return true;
        if (++looks & 63) continue;  // the clock is slower to read than a counter
        const uint32_t time = (uint32_t)now();
        if (looks == 64) began = time;
        if (time - began > patience) return give_up(NOTICE, number, wanted, found);
    }
}

static inline bool begin(Words head) {
    const uint64_t offset = (uint64_t)head[OFFSET + 1] << 32 | head[OFFSET];
    const uint64_t start = ((uint64_t)head[START + 1] << 32 | head[START]) + offset;
    const uint64_t first = now();
    for (uint64_t time = first; (int64_t)(time - start) < 0; time = now())
        if (time - first > head[PATIENCE]) return give_up(CLOCK, 0, (uint32_t)start, (uint32_t)time);
    return true;
}

static inline void multicast(uint32_t corners, uint32_t from, uint32_t to, uint32_t bytes, uint32_t sender) {
    const uint32_t x0 = column(corners), y0 = line(corners >> 4 & 15), x1 = column(corners >> 8), y1 = line(corners >> 12 & 15);
    const uint32_t targets = corners >> 16;
    // Each network goes one way round, so it wants the corner that it comes to first.
    const uint64_t all = noc_index == 0 ? get_noc_multicast_addr(x0, y0, x1, y1, to) : get_noc_multicast_addr(x1, y1, x0, y0, to);
    if (sender)  // it lies inside, and may not be left out
        noc_async_write_multicast_loopback_src(from, all, bytes, targets + 1);
    else
        noc_async_write_multicast(from, all, bytes, targets);
}

void kernel_main() {
    const uint32_t row = get_arg_val<uint32_t>(ROW), counters = row + get_arg_val<uint32_t>(COUNTERS);
    const uint32_t data = row + get_arg_val<uint32_t>(DATA);
    const Words head = words_at(row);
    const uint32_t repetitions = head[REPETITIONS];
    uint32_t stamps = row + get_arg_val<uint32_t>(STAMPS);
    bool alive = true;
    for (uint32_t repetition = 0; alive && repetition < repetitions; ++repetition, stamps += head[STRIDE]) {
        uint32_t next = row + get_arg_val<uint32_t>(PROGRAM);
        for (;; next += 16) {
            const Words word = words_at(next);
            const uint32_t code = word[0] & 255, where = word[0] >> 8;
            if (code == WAIT) {
                const uint32_t counter = counters + 16 * where;
                alive = reach(counter, where, repetition * words_at(counter)[1] + word[1]);
                if (!alive) break;
            } else if (code == WRITE) {
                noc_async_write(data + word[1], at(where, data + word[2]), word[3]);
            } else if (code == LANDED) {
                noc_async_write_barrier();
            } else if (code == RAISE) {
                noc_semaphore_inc(at(where, counters + 16 * word[1]), 1);
            } else if (code == COMBINE) {
                volatile tt_l1_ptr Element *into = elements_at<Element>(data + word[1]);
                volatile tt_l1_ptr Element *given = elements_at<Element>(data + word[2]);
                const uint32_t count = word[3] / sizeof(Element);
                for (uint32_t i = 0; i < count; ++i) into[i] = combine(into[i], given[i]);
            } else if (code == COPY) {
                const uint32_t to = data + word[1], from = data + word[2], bytes = word[3];
                if ((to | from | bytes) & 3)
                    copy<uint8_t>(to, from, bytes);
                else
                    copy<uint32_t>(to, from, bytes);
            } else if (code == MULTICAST || code == MULTICAST_TOO) {
                multicast(where, data + word[1], data + word[2], word[3], code == MULTICAST_TOO);
            } else if (code == READ) {
                noc_async_read(at(where, data + word[1]), data + word[2], word[3]);
            } else if (code == FETCHED) {
                noc_async_read_barrier();
            } else if (code == CHOOSE) {
                const uint64_t start = now() + head[MARGIN];
                head[START] = (uint32_t)start;
                head[START + 1] = (uint32_t)(start >> 32);
            } else if (code == ANNOUNCE) {
                noc_async_write(row + 4 * START, at(where, row + 4 * START), 8);
            } else if (code == BEGIN) {
                alive = begin(head);
                if (!alive) break;
            } else if (code == STAMP) {
                const uint64_t time = now();
                words_at(stamps)[2 * where] = (uint32_t)time;
                words_at(stamps)[2 * where + 1] = (uint32_t)(time >> 32);
            } else if (code == COMPUTE) {
                for (uint32_t i = 0; i < word[1]; ++i) asm volatile("" ::: "memory");
            } else {
                break;
            }
        }
    }
    noc_async_read_barrier();
    noc_async_write_barrier();
    noc_async_atomic_barrier();
}
