//! The loops, one for each kernel and width, in assembly: each access has exactly the width it says.
//!
//! A loop works on eight accesses per array before it looks whether it is done, so it needs blocks of a
//! multiple of 8 x 64 bytes. Values are loaded into registers that nothing waits for.

/// The scalar s of the triad a = b + s c.
pub(super) const FACTOR: f64 = 3.0;

/// What is done with each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Read,
    Write,
    Copy,
    Triad,
}

impl Kernel {
    pub(super) fn of(word: &str) -> Kernel {
        match word {
            "read" => Kernel::Read,
            "write" => Kernel::Write,
            "copy" => Kernel::Copy,
            _ => Kernel::Triad,
        }
    }

    /// Arrays that are read or written.
    pub(super) fn arrays(self) -> u64 {
        match self {
            Kernel::Read | Kernel::Write => 1,
            Kernel::Copy => 2,
            Kernel::Triad => 3,
        }
    }

    /// Arrays that are written without being read.
    pub(super) fn written(self) -> u64 {
        u64::from(self != Kernel::Read)
    }
}

/// Width of one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Width {
    W32,
    W64,
    W128,
    W256,
    W512,
}

impl Width {
    const ALL: [(&'static str, Width); 5] = [
        ("32", Width::W32),
        ("64", Width::W64),
        ("128", Width::W128),
        ("256", Width::W256),
        ("512", Width::W512),
    ];

    pub(super) fn bytes(self) -> usize {
        4 << self as usize
    }
}

/// A loop over blocks a, b, c of so many bytes.
type Loop = unsafe fn(*mut u8, *mut u8, *mut u8, usize);

/// The loop to use, and what it does.
#[derive(Clone, Copy)]
pub(super) struct Pass {
    pub width: Width,
    pub around_caches: bool,
    pub run: Loop,
}

/// The loop of this kernel and width, or why there is none here.
pub(super) fn find(kernel: Kernel, word: &str) -> Result<Pass, String> {
    let around_caches = word == "non_temporal";
    if around_caches && kernel == Kernel::Read {
        return Err("a non-temporal load of ordinary memory is an ordinary load".to_string());
    }
    let named = Width::ALL.iter().find(|(name, _)| *name == word);
    let width = named.map_or_else(machine::widest, |&(_, width)| width);
    if kernel == Kernel::Triad && width == Width::W32 {
        return Err("the triad is in 64-bit floats; ask for a wider access".to_string());
    }
    if !machine::has(width) {
        return Err(format!("this processor has no loads of {word} bits"));
    }
    let run = machine::run(kernel, width, around_caches);
    let run = run.ok_or_else(|| "this processor has no such stores that we know".to_string())?;
    Ok(Pass {
        width,
        around_caches,
        run,
    })
}

// Each function is one unsafe block: its caller gives arrays that are long enough.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_op_in_unsafe_fn)]
mod machine {
    use super::{Kernel, Loop, Width, FACTOR};
    use std::arch::asm;
    use std::arch::is_x86_feature_detected;

    pub(super) fn has(width: Width) -> bool {
        match width {
            Width::W512 => is_x86_feature_detected!("avx512f"),
            Width::W256 => is_x86_feature_detected!("avx"),
            _ => true,
        }
    }

    pub(super) fn widest() -> Width {
        let all = [Width::W512, Width::W256, Width::W128];
        all.into_iter()
            .find(|&width| has(width))
            .unwrap_or(Width::W128)
    }

    pub(super) fn run(kernel: Kernel, width: Width, around: bool) -> Option<Loop> {
        let loops = match (width, around) {
            (Width::W32, false) => w32::LOOPS,
            (Width::W64, false) => w64::LOOPS,
            (Width::W128, false) => w128::LOOPS,
            (Width::W256, false) => w256::LOOPS,
            (Width::W512, false) => w512::LOOPS,
            (Width::W128, true) => around128::LOOPS,
            (Width::W256, true) => around256::LOOPS,
            (Width::W512, true) => around512::LOOPS,
            _ => return None,
        };
        Some(loops[kernel as usize])
    }

    /// The four loops of one width: offsets of eight accesses, their length, one load, one store (both of
    /// register 0; register 1 is zero), and the arithmetic of the triad (register 2 holds s).
    macro_rules! loops {
        ($name:ident, $offsets:literal, $chunk:literal, $load:literal, $store:literal, $zero:literal, $spread:literal, $triad:literal, $end:literal) => {
            mod $name {
                use super::*;

                pub(super) const LOOPS: [Loop; 4] = [read, write, copy, triad];

                unsafe fn read(a: *mut u8, _: *mut u8, _: *mut u8, bytes: usize) {
                    asm!(
                        "2:",
                        concat!(".irp o,", $offsets), concat!($load, " [{a} + \\o]"), ".endr",
                        concat!("add {a}, ", $chunk), "cmp {a}, {end}", "jb 2b", $end,
                        a = inout(reg) a => _, end = in(reg) a.add(bytes),
                        out("xmm0") _, out("rax") _, options(nostack, readonly),
                    );
                }

                unsafe fn write(a: *mut u8, _: *mut u8, _: *mut u8, bytes: usize) {
                    asm!(
                        "xor eax, eax", $zero,
                        "2:",
                        concat!(".irp o,", $offsets), concat!($store, ".endr"),
                        concat!("add {a}, ", $chunk), "cmp {a}, {end}", "jb 2b", $end, "sfence",
                        a = inout(reg) a => _, end = in(reg) a.add(bytes),
                        out("xmm0") _, out("rax") _, options(nostack),
                    );
                }

                unsafe fn copy(a: *mut u8, b: *mut u8, _: *mut u8, bytes: usize) {
                    asm!(
                        "2:",
                        concat!(".irp o,", $offsets), concat!($load, " [{b} + \\o]"), concat!($store, ".endr"),
                        concat!("add {a}, ", $chunk), concat!("add {b}, ", $chunk),
                        "cmp {a}, {end}", "jb 2b", $end, "sfence",
                        a = inout(reg) a => _, b = inout(reg) b => _, end = in(reg) a.add(bytes),
                        out("xmm0") _, out("rax") _, options(nostack),
                    );
                }

                unsafe fn triad(a: *mut u8, b: *mut u8, c: *mut u8, bytes: usize) {
                    asm!(
                        "movq xmm2, {s}", $spread,
                        "2:",
                        concat!(".irp o,", $offsets), $triad, concat!($store, ".endr"),
                        concat!("add {a}, ", $chunk), concat!("add {b}, ", $chunk),
                        concat!("add {c}, ", $chunk), "cmp {a}, {end}", "jb 2b", $end, "sfence",
                        s = in(reg) FACTOR.to_bits(),
                        a = inout(reg) a => _, b = inout(reg) b => _, c = inout(reg) c => _,
                        end = in(reg) a.add(bytes),
                        out("xmm0") _, out("xmm2") _, out("rax") _, options(nostack),
                    );
                }
            }
        };
    }

    loops! {
        w32, "0,4,8,12,16,20,24,28", "32", "mov eax,", "mov [{a} + \\o], eax\n", "", "",
        "movsd xmm0, [{c} + \\o]\nmulsd xmm0, xmm2\naddsd xmm0, [{b} + \\o]", ""
    }
    loops! {
        w64, "0,8,16,24,32,40,48,56", "64", "movsd xmm0,", "movsd [{a} + \\o], xmm0\n",
        "xorpd xmm0, xmm0", "", "movsd xmm0, [{c} + \\o]\nmulsd xmm0, xmm2\naddsd xmm0, [{b} + \\o]",
        ""
    }
    loops! {
        w128, "0,16,32,48,64,80,96,112", "128", "movapd xmm0,", "movapd [{a} + \\o], xmm0\n",
        "xorpd xmm0, xmm0", "unpcklpd xmm2, xmm2",
        "movapd xmm0, [{c} + \\o]\nmulpd xmm0, xmm2\naddpd xmm0, [{b} + \\o]", ""
    }
    loops! {
        w256, "0,32,64,96,128,160,192,224", "256", "vmovapd ymm0,", "vmovapd [{a} + \\o], ymm0\n",
        "vxorpd ymm0, ymm0, ymm0", "vunpcklpd xmm2, xmm2, xmm2\nvinsertf128 ymm2, ymm2, xmm2, 1",
        "vmulpd ymm0, ymm2, [{c} + \\o]\nvaddpd ymm0, ymm0, [{b} + \\o]", "vzeroupper"
    }
    loops! {
        w512, "0,64,128,192,256,320,384,448", "512", "vmovapd zmm0,", "vmovapd [{a} + \\o], zmm0\n",
        "vpxorq zmm0, zmm0, zmm0", "vbroadcastsd zmm2, xmm2",
        "vmulpd zmm0, zmm2, [{c} + \\o]\nvaddpd zmm0, zmm0, [{b} + \\o]", "vzeroupper"
    }
    loops! {
        around128, "0,16,32,48,64,80,96,112", "128", "movapd xmm0,", "movntpd [{a} + \\o], xmm0\n",
        "xorpd xmm0, xmm0", "unpcklpd xmm2, xmm2",
        "movapd xmm0, [{c} + \\o]\nmulpd xmm0, xmm2\naddpd xmm0, [{b} + \\o]", ""
    }
    loops! {
        around256, "0,32,64,96,128,160,192,224", "256", "vmovapd ymm0,", "vmovntpd [{a} + \\o], ymm0\n",
        "vxorpd ymm0, ymm0, ymm0", "vunpcklpd xmm2, xmm2, xmm2\nvinsertf128 ymm2, ymm2, xmm2, 1",
        "vmulpd ymm0, ymm2, [{c} + \\o]\nvaddpd ymm0, ymm0, [{b} + \\o]", "vzeroupper"
    }
    loops! {
        around512, "0,64,128,192,256,320,384,448", "512", "vmovapd zmm0,",
        "vmovntpd [{a} + \\o], zmm0\n", "vpxorq zmm0, zmm0, zmm0", "vbroadcastsd zmm2, xmm2",
        "vmulpd zmm0, zmm2, [{c} + \\o]\nvaddpd zmm0, zmm0, [{b} + \\o]", "vzeroupper"
    }
}

/// Elsewhere the compiler chooses its widest; we cannot ask for another.
#[cfg(not(target_arch = "x86_64"))]
#[allow(unsafe_op_in_unsafe_fn)]
mod machine {
    use super::{Kernel, Loop, Width, FACTOR};

    pub(super) fn has(width: Width) -> bool {
        width == widest()
    }

    pub(super) fn widest() -> Width {
        Width::W128
    }

    pub(super) fn run(kernel: Kernel, _: Width, around: bool) -> Option<Loop> {
        let loops: [Loop; 4] = [read, write, copy, triad];
        (!around).then_some(loops[kernel as usize])
    }

    unsafe fn read(a: *mut u8, _: *mut u8, _: *mut u8, bytes: usize) {
        let words = std::slice::from_raw_parts(a.cast::<u64>(), bytes / 8);
        std::hint::black_box(words.iter().fold(0, |sum, word| sum ^ word));
    }

    unsafe fn write(a: *mut u8, _: *mut u8, _: *mut u8, bytes: usize) {
        std::slice::from_raw_parts_mut(a, bytes).fill(0);
        std::hint::black_box(a);
    }

    unsafe fn copy(a: *mut u8, b: *mut u8, _: *mut u8, bytes: usize) {
        std::ptr::copy_nonoverlapping(b, a, bytes);
        std::hint::black_box(a);
    }

    unsafe fn triad(a: *mut u8, b: *mut u8, c: *mut u8, bytes: usize) {
        let out = std::slice::from_raw_parts_mut(a.cast::<f64>(), bytes / 8);
        let one = std::slice::from_raw_parts(b.cast::<f64>(), bytes / 8);
        let two = std::slice::from_raw_parts(c.cast::<f64>(), bytes / 8);
        for ((out, one), two) in out.iter_mut().zip(one).zip(two) {
            *out = one + FACTOR * two;
        }
        std::hint::black_box(a);
    }
}
