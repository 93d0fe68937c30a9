// Copying and combining contiguous bytes with all threads of a block.
//
// Neighbouring threads take neighbouring pieces, as wide as the addresses allow, so that a warp moves whole
// lines; four loads of a thread are in flight before the first store. Combining is `to[i] = to[i] op from[i]`
// with the arithmetic of the host: integers wrap, bf16 is widened, combined and rounded to nearest even,
// `max` and `min` compare. CPU reference: `dtype::combine` of linkwright-exec.
#pragma once
#include "device.cuh"

enum DType : u32 { F32, F64, I32, I64, U8, BF16 };
enum ReduceOp : u32 { SUM, MAX, MIN, PROD };

// So many values of T as one access.
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

// What is done with a pack that was read; `to` is read too where it is combined.
struct Overwrite {
    template <class P> static __device__ P apply(const P *, P from) { return from; }
};

template <ReduceOp OP> struct Combine {
    template <class T, int N> static __device__ Pack<T, N> apply(const Pack<T, N> *to, Pack<T, N> from) {
        Pack<T, N> result = *to;
        for (int i = 0; i < N; ++i) result.lane[i] = combined<OP>(result.lane[i], from.lane[i]);
        return result;
    }
};

// All threads of the block: `count` packs, four in flight per thread.
template <class How, class P> __device__ inline void each(P *to, const P *from, u64 count) {
    const u64 step = blockDim.x;
    u64 i = threadIdx.x;
    for (; i + 3 * step < count; i += 4 * step) {
        P a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
        to[i] = How::apply(to + i, a);
        to[i + step] = How::apply(to + i + step, b);
        to[i + 2 * step] = How::apply(to + i + 2 * step, c);
        to[i + 3 * step] = How::apply(to + i + 3 * step, d);
    }
    for (; i < count; i += step) to[i] = How::apply(to + i, from[i]);
}

// The widest pack of T, up to 16 bytes, that both addresses and the length allow.
template <class How, class T> __device__ inline void widest(u8 *to, const u8 *from, u64 bytes) {
    const u64 borders = (u64)to | (u64)from | bytes;
    if (borders % 16 == 0) {
        typedef Pack<T, 16 / sizeof(T)> P;
        each<How>((P *)to, (const P *)from, bytes / sizeof(P));
    } else {
        typedef Pack<T, 1> P;
        each<How>((P *)to, (const P *)from, bytes / sizeof(P));
    }
}

template <class T> __device__ inline void combine_as(u32 op, u8 *to, const u8 *from, u64 bytes) {
    switch (op) {
    case SUM: return widest<Combine<SUM>, T>(to, from, bytes);
    case MAX: return widest<Combine<MAX>, T>(to, from, bytes);
    case MIN: return widest<Combine<MIN>, T>(to, from, bytes);
    default: return widest<Combine<PROD>, T>(to, from, bytes);
    }
}

// Every thread of the block calls it; both addresses are aligned to the type.
__device__ inline void combine(u32 dtype, u32 op, u8 *to, const u8 *from, u64 bytes) {
    switch (dtype) {
    case F32: return combine_as<float>(op, to, from, bytes);
    case F64: return combine_as<double>(op, to, from, bytes);
    case I32: return combine_as<i32>(op, to, from, bytes);
    case I64: return combine_as<i64>(op, to, from, bytes);
    case U8: return combine_as<u8>(op, to, from, bytes);
    default: return combine_as<Bf16>(op, to, from, bytes);
    }
}

// Every thread of the block calls it.
__device__ inline void copy(u8 *to, const u8 *from, u64 bytes) {
    const u64 borders = (u64)to | (u64)from | bytes;
    if (borders % 4 == 0) return widest<Overwrite, u32>(to, from, bytes);
    return widest<Overwrite, u8>(to, from, bytes);
}
