//! How long one cycle of this core lasts, at the clock it runs at just now.
//!
//! A chain of exclusive-ors, each of which needs the result of the one before: no processor does one of
//! them in less than a cycle, and all that we know take exactly one. (Additions of a constant will not do:
//! some processors fold them away when they rename registers.)

use crate::timer::Clock;

/// Links of the chain in one go.
const CHAIN: u32 = 100;
/// Goes of one reading: some 10 us.
const GOES: u32 = 400;

/// Nanoseconds per cycle: the shortest of several readings. `None` on a processor we have no chain for.
pub(super) fn cycle_ns() -> Option<f64> {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return None;
    }
    let clock = Clock::get();
    let reading = |_| {
        let start = clock.now();
        (0..GOES).for_each(|_| chain());
        clock.ns_between(start, clock.now()) / f64::from(CHAIN * GOES)
    };
    (0..20).map(reading).min_by(f64::total_cmp)
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn chain() {
    // SAFETY: changes one register that the compiler knows of.
    unsafe {
        std::arch::asm!(
            ".rept 100", "xor {x}, {y}", ".endr",
            x = inout(reg) 1u64 => _, y = in(reg) 3u64,
            options(nomem, nostack),
        );
    }
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn chain() {
    // SAFETY: changes one register that the compiler knows of.
    unsafe {
        std::arch::asm!(
            ".rept 100", "eor {x}, {x}, {y}", ".endr",
            x = inout(reg) 1u64 => _, y = in(reg) 3u64,
            options(nomem, nostack),
        );
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain() {}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cycle_is_that_of_some_processor() {
        if let Some(ns) = super::cycle_ns() {
            // 100 MHz to 10 GHz; a machine that is busy only seems slower.
            assert!((0.1..10.0).contains(&ns), "{ns} ns");
        }
    }
}
