// Copying and combining contiguous bytes with all threads of a block, or with a team of them.
//
// Neighbouring threads take neighbouring pieces, as wide as the addresses allow, so that a warp moves whole
// lines; four packs of a thread are in flight before the first store. Combining is `to[i] = to[i] op from[i]`
// with the arithmetic of the host: integers wrap, bf16 is widened, combined and rounded to nearest even,
// `max` and `min` compare. CPU reference: `dtype::combine` of linkwright-exec.
#pragma once
#include "device.cuh"

enum DType : u32 { F32, F64, I32, I64, U8, BF16 };
enum ReduceOp : u32 { SUM, MAX, MIN, PROD };

// N values of T as one access.
template <class T, int N> struct alignas(sizeof(T) * N) Pack {
    T lane[N];
};

struct Bf16 {
    u16 bits;
};

template <class T> struct Arithmetic {
    typedef T Wide;
    static __device__ Wide widen(T value) { return value; }
    static __device__ T narrow(Wide value) { return value; }
};

template <> struct Arithmetic<Bf16> {
    typedef float Wide;
    static __device__ float widen(Bf16 value) {
        union { u32 bits; float number; } both;
        both.bits = (u32)value.bits << 16;
        return both.number;
    }
    // To nearest, ties to even; filled data holds no NaN.
    static __device__ Bf16 narrow(float value) {
        union { u32 bits; float number; } both;
        both.number = value;
        Bf16 rounded;
        rounded.bits = (u16)((both.bits + 0x7fffu + (both.bits >> 16 & 1u)) >> 16);
        return rounded;
    }
};

// Signed overflow is undefined; unsigned arithmetic wraps and gives the same bits.
__device__ inline float add(float a, float b) { return a + b; }
__device__ inline double add(double a, double b) { return a + b; }
__device__ inline i32 add(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
__device__ inline i64 add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
__device__ inline u8 add(u8 a, u8 b) { return (u8)(a + b); }
__device__ inline float multiply(float a, float b) { return a * b; }
__device__ inline double multiply(double a, double b) { return a * b; }
__device__ inline i32 multiply(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
__device__ inline i64 multiply(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
__device__ inline u8 multiply(u8 a, u8 b) { return (u8)(a * b); }

template <ReduceOp OP, class T> __device__ inline T combined(T to, T from) {
    typedef Arithmetic<T> A;
    typename A::Wide left = A::widen(to), right = A::widen(from);
    if (OP == SUM) return A::narrow(add(left, right));
    if (OP == PROD) return A::narrow(multiply(left, right));
    if (OP == MAX) return right > left ? from : to;
    return right < left ? from : to;
}

// Two neighbours in bf16. The hardware sums both in one instruction, in place of some fourteen: a times 1 plus b, rounded
// once. That the sum in 32 bits is rounded again changes nothing: 24 bits are more than twice 8 and two.
struct Bf16Pair {
    u32 bits;
};

template <ReduceOp OP> __device__ inline Bf16Pair combined(Bf16Pair to, Bf16Pair from) {
#if defined(__CUDACC__)
    if (OP == SUM) {
        asm("fma.rn.bf16x2 %0, %1, %2, %0;" : "+r"(to.bits) : "r"(from.bits), "r"(0x3f803f80));
        return to;
    }
#endif
    const Bf16 low = combined<OP>(Bf16{(u16)to.bits}, Bf16{(u16)from.bits});
    const Bf16 high = combined<OP>(Bf16{(u16)(to.bits >> 16)}, Bf16{(u16)(from.bits >> 16)});
    return Bf16Pair{low.bits | (u32)high.bits << 16};
}

// 16 bytes of values of T.
template <class T> struct InPacks {
    typedef T Type;
};

template <> struct InPacks<Bf16> {
    typedef Bf16Pair Type;
};

template <class T> using WholePack = Pack<typename InPacks<T>::Type, 16 / sizeof(typename InPacks<T>::Type)>;

// What is done with a pack that was read; what it is combined with is read too.
struct Overwrite {
    template <class P> static __device__ P held(const P *) { return P(); }
    template <class P> static __device__ P apply(P, P from) { return from; }
};

template <ReduceOp OP> struct Combine {
    template <class P> static __device__ P held(const P *to) { return *to; }
    template <class T, int N> static __device__ Pack<T, N> apply(Pack<T, N> to, Pack<T, N> from) {
        for (int i = 0; i < N; ++i) to.lane[i] = combined<OP>(to.lane[i], from.lane[i]);
        return to;
    }
};

// Threads that share a piece of work: member number `member` of so many.
struct Team {
    u32 member, members;
};

__device__ inline Team whole_block() {
    const Team team = {threadIdx.x, blockDim.x};
    return team;
}

// All of a team: `count` packs. All loads of a round come before its first store, which they could not pass.
template <class How, class P> __device__ inline void each(Team team, P *to, const P *from, u64 count) {
    const u32 AT_ONCE = 4;
    const u64 step = team.members;
    for (u64 first = team.member; first < count; first += AT_ONCE * step) {
        P read[AT_ONCE] = {}, held[AT_ONCE] = {};
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
            const u64 at = first + i * step;
            if (at >= count) continue;
            read[i] = from[at];
            held[i] = How::held(to + at);
        }
#pragma unroll
        for (u32 i = 0; i < AT_ONCE; ++i) {
            const u64 at = first + i * step;
            if (at < count) to[at] = How::apply(held[i], read[i]);
        }
    }
}

// The widest pack of T, up to 16 bytes, that both addresses and the length allow.
template <class How, class T> __device__ inline void widest(Team team, u8 *to, const u8 *from, u64 bytes) {
    const u64 borders = (u64)to | (u64)from | bytes;
    if (borders % 16 == 0) {
        typedef WholePack<T> P;
        each<How>(team, (P *)to, (const P *)from, bytes / sizeof(P));
    } else {
        typedef Pack<T, 1> P;
        each<How>(team, (P *)to, (const P *)from, bytes / sizeof(P));
    }
}

// Numbers of the host as types: `run` is called with the TypeAndOp that they name. With KNOWN_DTYPE and KNOWN_OP,
// numbers too, it is known when the kernel is compiled, which then takes a fraction of the time.
template <ReduceOp OP_, class T_> struct TypeAndOp {
    static const ReduceOp OP = OP_;
    typedef T_ T;
};

template <class T, class Run> __device__ inline void with_op(u32 op, Run run) {
    switch (op) {
    case SUM: return run(TypeAndOp<SUM, T>());
    case MAX: return run(TypeAndOp<MAX, T>());
    case MIN: return run(TypeAndOp<MIN, T>());
    default: return run(TypeAndOp<PROD, T>());
    }
}

template <class Run> __device__ inline void with_kind(u32 dtype, u32 op, Run run) {
#if defined(KNOWN_DTYPE)
    dtype = KNOWN_DTYPE;
    op = KNOWN_OP;
#endif
    switch (dtype) {
    case F32: return with_op<float>(op, run);
    case F64: return with_op<double>(op, run);
    case I32: return with_op<i32>(op, run);
    case I64: return with_op<i64>(op, run);
    case U8: return with_op<u8>(op, run);
    default: return with_op<Bf16>(op, run);
    }
}

// All of a team; both addresses are aligned to the type.
__device__ inline void combine(Team team, u32 dtype, u32 op, u8 *to, const u8 *from, u64 bytes) {
    with_kind(dtype, op, [=](auto kind) {
        typedef decltype(kind) K;
        widest<Combine<K::OP>, typename K::T>(team, to, from, bytes);
    });
}

// All of a team.
__device__ inline void copy(Team team, u8 *to, const u8 *from, u64 bytes) {
    const u64 borders = (u64)to | (u64)from | bytes;
    if (borders % 4 == 0) return widest<Overwrite, u32>(team, to, from, bytes);
    if (borders % 2 == 0) return widest<Overwrite, u16>(team, to, from, bytes);
    return widest<Overwrite, u8>(team, to, from, bytes);
}
