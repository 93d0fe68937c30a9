//! Peak floating-point rate: fused multiply-adds on registers only.
//!
//! ```text
//!   a <- a m + c        12 accumulators a, each as wide as a vector register; m and c never change
//! ```
//!
//! A multiply-add counts as two operations. The accumulators do not depend on each other, so a core with two
//! units of latency 4 or 5 (8 to 10 in flight) is kept busy. Nothing touches memory, so only the clock matters,
//! not caches or other cores. `a` converges to `c / (1 - m) = 1`, so the result is known, no value is ever
//! denormal, and a kernel that skips work is detected.
//!
//! The kernels are assembly: a compiler might merge, drop or spill operations and change the result.
//! A processor without fused multiply-add gets plain products and sums, which count the same.

/// Elements of what a kernel multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit floats.
    Single,
    /// 64-bit floats.
    Double,
}

impl Precision {
    /// The precision of a data type's name.
    pub fn of(dtype: &str) -> Option<Precision> {
        match dtype {
            "f32" => Some(Precision::Single),
            "f64" => Some(Precision::Double),
            _ => None,
        }
    }

    /// Bits of one element.
    pub fn bits(self) -> u64 {
        match self {
            Precision::Single => 32,
            Precision::Double => 64,
        }
    }
}

/// One way of doing multiply-adds.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Instructions and width.
    pub name: &'static str,
    /// Of the elements.
    pub precision: Precision,
    /// Bits of one register.
    register_bits: u64,
    run: Run,
}

type Run = unsafe fn(&mut Register, u64);

/// Accumulators of a kernel.
const ACCUMULATORS: u64 = 12;
/// Multiplier: close to 1, so that a wrong number of steps shows for long.
const M: f64 = 0.999;
const C: f64 = 0.001;

/// m, c and, after a run, one of the accumulators, as both precisions; as long as the longest register.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Register {
    m64: f64,
    c64: f64,
    m32: f32,
    c32: f32,
    last: [u64; 8],
}

impl Kernel {
    /// Operations of one step.
    pub fn flops(&self) -> u64 {
        2 * ACCUMULATORS * self.register_bits / self.precision.bits()
    }

    /// Does `steps` steps and returns the value of an accumulator, which began with 0:
    /// `1 - m^steps`.
    pub fn run(&self, steps: u64) -> f64 {
        let mut register = Register {
            m64: M,
            c64: C,
            m32: M as f32,
            c32: C as f32,
            ..Register::default()
        };
        // SAFETY: the kernel was chosen because the processor has its instructions.
        unsafe { (self.run)(&mut register, steps) };
        match self.precision {
            Precision::Single => f64::from(f32::from_bits(register.last[0] as u32)),
            Precision::Double => f64::from_bits(register.last[0]),
        }
    }
}

/// The widest kernel that this processor has.
#[cfg(target_arch = "x86_64")]
pub fn widest(precision: Precision) -> Kernel {
    if is_x86_feature_detected!("avx512f") {
        return kernel(
            "AVX-512",
            512,
            precision,
            [x86::wide512_f32, x86::wide512_f64],
        );
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return kernel("AVX2", 256, precision, [x86::wide256_f32, x86::wide256_f64]);
    }
    portable(precision)
}

/// The widest kernel that this processor has.
#[cfg(target_arch = "aarch64")]
pub fn widest(precision: Precision) -> Kernel {
    kernel("NEON", 128, precision, [arm::wide128_f32, arm::wide128_f64])
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[allow(missing_docs, reason = "documented above")]
pub fn widest(precision: Precision) -> Kernel {
    portable(precision)
}

/// Products and sums that the compiler makes vectors of, as wide as it dares.
#[allow(dead_code, reason = "the last resort of some architectures")]
fn portable(precision: Precision) -> Kernel {
    kernel("portable", 128, precision, [portable_f32, portable_f64])
}

fn kernel(name: &'static str, register_bits: u64, precision: Precision, runs: [Run; 2]) -> Kernel {
    Kernel {
        name,
        precision,
        register_bits,
        run: runs[precision as usize],
    }
}

macro_rules! portable_kernel {
    ($name:ident, $type:ty, $lanes:literal, $m:ident, $c:ident) => {
        #[allow(dead_code, reason = "the last resort of some architectures")]
        unsafe fn $name(register: &mut Register, steps: u64) {
            let (m, c) = (register.$m, register.$c);
            let mut all = [0 as $type; $lanes];
            for _ in 0..steps {
                // Without the box, many steps would become one.
                all = std::hint::black_box(all);
                all.iter_mut().for_each(|a| *a = *a * m + c);
            }
            register.last[0] = u64::from(all[0].to_bits());
        }
    };
}
portable_kernel!(portable_f32, f32, 48, m32, c32);
portable_kernel!(portable_f64, f64, 24, m64, c64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Register;
    use std::arch::asm;

    macro_rules! kernel {
        ($name:ident, $register:literal, $fma:literal, $broadcast:literal, $m:ident, $c:ident, $store:literal) => {
            /// Accumulators 0 to 11, m in 12, c in 13. The compiler of this crate uses no register wider than
            /// the low parts that are named as lost, and the high parts are cleared at the end.
            pub(super) unsafe fn $name(register: &mut Register, steps: u64) {
                // SAFETY: the caller has seen that the processor has the instructions; the store stays
                // within `last`.
                unsafe {
                    asm!(
                        concat!($broadcast, " ", $register, "12, [{m}]"),
                        concat!($broadcast, " ", $register, "13, [{c}]"),
                        "vxorps xmm0, xmm0, xmm0", "vxorps xmm1, xmm1, xmm1", "vxorps xmm2, xmm2, xmm2",
                        "vxorps xmm3, xmm3, xmm3", "vxorps xmm4, xmm4, xmm4", "vxorps xmm5, xmm5, xmm5",
                        "vxorps xmm6, xmm6, xmm6", "vxorps xmm7, xmm7, xmm7", "vxorps xmm8, xmm8, xmm8",
                        "vxorps xmm9, xmm9, xmm9", "vxorps xmm10, xmm10, xmm10", "vxorps xmm11, xmm11, xmm11",
                        "test {n}, {n}",
                        "jz 3f",
                        "2:",
                        concat!($fma, " ", $register, "0, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "1, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "2, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "3, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "4, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "5, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "6, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "7, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "8, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "9, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "10, ", $register, "12, ", $register, "13"),
                        concat!($fma, " ", $register, "11, ", $register, "12, ", $register, "13"),
                        "dec {n}",
                        "jnz 2b",
                        "3:",
                        concat!($store, " [{last}], ", $register, "11"),
                        "vzeroupper",
                        m = in(reg) &register.$m,
                        c = in(reg) &register.$c,
                        last = in(reg) &mut register.last,
                        n = inout(reg) steps => _,
                        out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _,
                        out("xmm5") _, out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _,
                        out("xmm10") _, out("xmm11") _, out("xmm12") _, out("xmm13") _,
                        options(nostack),
                    );
                }
            }
        };
    }
    kernel! {
        wide256_f64, "ymm", "vfmadd213pd", "vbroadcastsd", m64, c64, "vmovupd"
    }
    kernel! {
        wide256_f32, "ymm", "vfmadd213ps", "vbroadcastss", m32, c32, "vmovups"
    }
    kernel! {
        wide512_f64, "zmm", "vfmadd213pd", "vbroadcastsd", m64, c64, "vmovupd"
    }
    kernel! {
        wide512_f32, "zmm", "vfmadd213ps", "vbroadcastss", m32, c32, "vmovups"
    }
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Register;
    use std::arch::aarch64::*;
    use std::hint::black_box;

    macro_rules! kernel {
        ($name:ident, $broadcast:ident, $fma:ident, $store:ident, $type:ty, $m:ident, $c:ident) => {
            /// `fmla` adds to a register, so a step is a <- c + a m with c moved first; the moves are renamed
            /// away.
            pub(super) unsafe fn $name(register: &mut Register, steps: u64) {
                // SAFETY: NEON belongs to the base of this architecture; the store stays within `last`.
                unsafe {
                    let (m, c) = ($broadcast(register.$m), $broadcast(register.$c));
                    let (m, c) = (black_box(m), black_box(c));
                    let mut all = [$broadcast(0.0); 12];
                    for _ in 0..steps {
                        for a in &mut all {
                            *a = $fma(c, *a, m);
                        }
                    }
                    $store(register.last.as_mut_ptr().cast::<$type>(), all[11]);
                    black_box(all);
                }
            }
        };
    }
    kernel! {
        wide128_f64, vdupq_n_f64, vfmaq_f64, vst1q_f64, f64, m64, c64
    }
    kernel! {
        wide128_f32, vdupq_n_f32, vfmaq_f32, vst1q_f32, f32, m32, c32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_does_every_step() {
        for (precision, within) in [(Precision::Single, 1e-4), (Precision::Double, 1e-12)] {
            for kernel in [widest(precision), portable(precision)] {
                for steps in [0, 1, 2, 1000] {
                    let wanted = 1.0 - M.powi(steps as i32);
                    let found = kernel.run(steps);
                    assert!(
                        (found - wanted).abs() < within,
                        "{kernel:?}: {found} after {steps}"
                    );
                }
            }
        }
    }

    #[test]
    fn operations_are_counted_by_width() {
        let double = widest(Precision::Double);
        let single = widest(Precision::Single);
        assert_eq!(single.flops(), 2 * double.flops());
        assert_eq!(portable(Precision::Double).flops(), 2 * 24);
        assert_eq!(portable(Precision::Single).flops(), 2 * 48);
    }
}
