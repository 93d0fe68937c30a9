//! Element types, reductions, and the loops that combine two arrays.
//!
//! A reduction in memory is `destination[i] = destination[i] op source[i]`. The loops are plain
//! generic Rust that the compiler vectorises; on x86-64 each is compiled twice more, for AVX2 and
//! for AVX-512, and the widest that the processor has is taken at run time.
//!
//! Integers wrap (a sum of bytes is modulo 256, as in MPI and NCCL). `bf16` is widened to f32,
//! combined, and rounded to nearest even. `max` and `min` of floats compare, so a NaN in the
//! destination stays and one in the source is dropped; filled data holds none.

use half::bf16;
use std::fmt;

linkwright_core::words! {
    /// The element type of a buffer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DType {
        /// 32-bit IEEE float.
        F32 = "f32",
        /// 64-bit IEEE float.
        F64 = "f64",
        /// 32-bit two's complement integer.
        I32 = "i32",
        /// 64-bit two's complement integer.
        I64 = "i64",
        /// Byte.
        U8 = "u8",
        /// 16-bit float with the exponent of f32.
        Bf16 = "bf16",
    }
}

impl DType {
    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::U8 => 1,
            DType::Bf16 => 2,
            DType::F32 | DType::I32 => 4,
            DType::F64 | DType::I64 => 8,
        }
    }
}

linkwright_core::words! {
    /// How two elements become one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum ReduceOp {
        /// Addition.
        Sum = "sum",
        /// The larger.
        Max = "max",
        /// The smaller.
        Min = "min",
        /// Multiplication.
        Prod = "prod",
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for ReduceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An element that can be combined.
pub(crate) trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// `self op other`, where `OP` is a [`ReduceOp`] as a number.
    fn combined<const OP: u8>(self, other: Self) -> Self;
}

const SUM: u8 = ReduceOp::Sum as u8;
const MAX: u8 = ReduceOp::Max as u8;
const MIN: u8 = ReduceOp::Min as u8;
pub(crate) const PROD: u8 = ReduceOp::Prod as u8;

macro_rules! element {
    ($($type:ty: $sum:expr, $prod:expr, $wide:expr;)*) => {$(
        impl Element for $type {
            #[inline(always)]
            fn combined<const OP: u8>(self, other: Self) -> Self {
                match OP {
                    SUM => $sum(self, other),
                    PROD => $prod(self, other),
                    MAX => if $wide(other) > $wide(self) { other } else { self },
                    _ => if $wide(other) < $wide(self) { other } else { self },
                }
            }
        }
    )*};
}

element! {
    f32: |a: f32, b| a + b, |a: f32, b| a * b, |a| a;
    f64: |a: f64, b| a + b, |a: f64, b| a * b, |a| a;
    i32: i32::wrapping_add, i32::wrapping_mul, |a| a;
    i64: i64::wrapping_add, i64::wrapping_mul, |a| a;
    u8: u8::wrapping_add, u8::wrapping_mul, |a| a;
    bf16: |a, b| narrow(widen(a) + widen(b)), |a, b| narrow(widen(a) * widen(b)), widen;
}

#[inline(always)]
fn widen(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// Round to nearest even without a branch, so that the loop vectorises; a NaN stays a quiet NaN.
#[inline(always)]
fn narrow(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    let kept = if value.is_nan() {
        bits | 0x0040_0000
    } else {
        rounded
    };
    bf16::from_bits((kept >> 16) as u16)
}

/// A compiled loop: `out[i] = left[i] op right[i]` over a number of elements; `out` may be `left`.
pub(crate) type Kernel = unsafe fn(out: *mut u8, left: *const u8, right: *const u8, n: usize);

/// The loop for a type and an operation, the widest this processor can run.
///
/// # Safety of the result
/// Pointers aligned to the type, valid for `n` elements; `out` is `left` or overlaps neither.
pub(crate) fn kernel(dtype: DType, op: ReduceOp) -> Kernel {
    match dtype {
        DType::F32 => kernel_of::<f32>(op),
        DType::F64 => kernel_of::<f64>(op),
        DType::I32 => kernel_of::<i32>(op),
        DType::I64 => kernel_of::<i64>(op),
        DType::U8 => kernel_of::<u8>(op),
        DType::Bf16 => kernel_of::<bf16>(op),
    }
}

#[inline(always)]
unsafe fn each<T: Element, const OP: u8>(
    out: *mut u8,
    left: *const u8,
    right: *const u8,
    n: usize,
) {
    let op = T::combined::<OP>;
    let (out, left, right) = (out.cast::<T>(), left.cast::<T>(), right.cast::<T>());
    // A loop of its own for accumulating: the compiled one below looks at run time whether its arrays
    // overlap, and would take one element at a time where `out` is `left`.
    if std::ptr::eq(out, left) {
        for i in 0..n {
            // SAFETY: the caller vouches for n elements behind each pointer.
            unsafe { *out.add(i) = op(*out.add(i), *right.add(i)) };
        }
        return;
    }
    for i in 0..n {
        // SAFETY: the same.
        unsafe { *out.add(i) = op(*left.add(i), *right.add(i)) };
    }
}

macro_rules! kernels {
    ($($name:ident $(, $feature:literal)?;)*) => {$(
        mod $name {
            use super::*;
            $(#[target_feature(enable = $feature)])?
            unsafe fn run<T: Element, const OP: u8>(out: *mut u8, left: *const u8, right: *const u8, n: usize) {
                // SAFETY: as promised by the caller of the kernel.
                unsafe { each::<T, OP>(out, left, right, n) }
            }
            pub fn pick<T: Element>(op: ReduceOp) -> Kernel {
                match op {
                    ReduceOp::Sum => run::<T, SUM>,
                    ReduceOp::Prod => run::<T, PROD>,
                    ReduceOp::Max => run::<T, MAX>,
                    ReduceOp::Min => run::<T, MIN>,
                }
            }
        }
    )*};
}

kernels! { baseline; }
#[cfg(target_arch = "x86_64")]
kernels! { avx2, "avx2"; avx512, "avx512f,avx512bw,avx512vl,avx512dq"; }

fn kernel_of<T: Element>(op: ReduceOp) -> Kernel {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
        {
            return avx512::pick::<T>(op);
        }
        if is_x86_feature_detected!("avx2") {
            return avx2::pick::<T>(op);
        }
    }
    baseline::pick::<T>(op)
}

/// Combines `source` into `destination`, both holding whole elements.
///
/// # Panics
/// Where lengths differ or an address is not aligned to the element type.
pub fn combine(dtype: DType, op: ReduceOp, destination: &mut [u8], source: &[u8]) {
    assert_eq!(destination.len(), source.len(), "lengths differ");
    let size = dtype.size();
    assert_eq!(source.len() % size, 0, "not whole elements of {dtype}");
    let aligned = |address: usize| address % size == 0;
    assert!(
        aligned(destination.as_ptr() as usize) && aligned(source.as_ptr() as usize),
        "buffers must be aligned to {dtype}"
    );
    let out = destination.as_mut_ptr();
    // SAFETY: both are aligned and hold n elements; a shared and a mutable slice never overlap.
    unsafe { kernel(dtype, op)(out, out, source.as_ptr(), source.len() / size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Copy>(values: &[T]) -> Vec<u8> {
        let n = std::mem::size_of_val(values);
        // SAFETY: plain numbers read as bytes.
        unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), n) }.to_vec()
    }

    fn check<T: Element + fmt::Debug>(dtype: DType, op: ReduceOp, a: &[T], b: &[T], want: &[T]) {
        let mut left = a.to_vec();
        let n = left.len();
        // SAFETY: a vector of T is aligned and holds n elements.
        unsafe {
            let out = left.as_mut_ptr().cast::<u8>();
            kernel(dtype, op)(out, out, b.as_ptr().cast(), n);
        }
        assert_eq!(left, want, "{dtype} {op}");
        assert_eq!(bytes(&left), bytes(want));
    }

    #[test]
    fn integers_wrap() {
        check::<u8>(DType::U8, ReduceOp::Sum, &[250; 70], &[10; 70], &[4; 70]);
        check::<i32>(
            DType::I32,
            ReduceOp::Prod,
            &[i32::MAX; 9],
            &[2; 9],
            &[-2; 9],
        );
        check::<i64>(DType::I64, ReduceOp::Min, &[-3; 5], &[7; 5], &[-3; 5]);
    }

    #[test]
    fn floats_combine() {
        check::<f32>(
            DType::F32,
            ReduceOp::Sum,
            &[1.5; 33],
            &[2.0; 33],
            &[3.5; 33],
        );
        check::<f64>(DType::F64, ReduceOp::Max, &[1.5; 3], &[2.0; 3], &[2.0; 3]);
    }

    #[test]
    fn bf16_rounds_as_the_half_crate_does() {
        let values: Vec<bf16> = (0..2_000u16).map(|i| bf16::from_bits(i * 29)).collect();
        for (&a, &b) in values.iter().zip(values.iter().rev()) {
            let (mine, theirs) = (
                a.combined::<SUM>(b),
                bf16::from_f32(a.to_f32() + b.to_f32()),
            );
            assert!(mine == theirs || (mine.is_nan() && theirs.is_nan()));
        }
    }
}
