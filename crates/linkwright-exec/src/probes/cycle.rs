//! The length of one cycle of this core at its current clock.
//!
//! A chain of exclusive-ors, each of which needs the result of the previous one: no processor does one in
//! less than a cycle, and all known ones take exactly one. (Additions of a constant do not work: some
//! processors fold them away when they rename registers.)

use crate::timer::Clock;
use crate::topology::pin_to;

/// Links of the chain.
const CHAIN: u32 = 100;
/// Chains of one reading: about 10 us.
const GOES: u32 = 400;

/// The cycle of each of these processors, 0.3 ms each. `None` also where a thread cannot be tied to one.
pub fn cycles_ns(cpus: &[u32]) -> Vec<Option<f64>> {
    let on = |&cpu: &u32| pin_to(cpu).ok().and_then(|()| cycle_ns());
    // A thread of its own, so that the caller stays where it may run.
    std::thread::scope(|scope| {
        let readings = scope.spawn(|| cpus.iter().map(on).collect());
        readings.join().expect("reading a clock does not panic")
    })
}

/// Nanoseconds per cycle: the shortest of several readings. `None` on a processor without a chain here.
pub fn cycle_ns() -> Option<f64> {
    if cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return None;
    }
    let clock = Clock::get();
    let reading = |_| {
        let start = clock.now();
        // Each chain begins with the result of the previous one: independent ones would overlap.
        std::hint::black_box((0..GOES).fold(1, |link, _| chain(link)));
        clock.ns_between(start, clock.now()) / f64::from(CHAIN * GOES)
    };
    (0..20).map(reading).min_by(f64::total_cmp)
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[inline(always)]
fn chain(mut link: u64) -> u64 {
    // SAFETY: changes one register that the compiler knows of.
    unsafe {
        std::arch::asm!(
            ".rept 100",
            #[cfg(target_arch = "x86_64")]
            "xor {x}, {y}",
            #[cfg(target_arch = "aarch64")]
            "eor {x}, {x}, {y}",
            ".endr",
            x = inout(reg) link, y = in(reg) 3u64,
            options(nomem, nostack),
        );
    }
    link
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn chain(link: u64) -> u64 {
    link
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cycle_is_that_of_some_processor() {
        if let Some(ns) = super::cycle_ns() {
            // 100 MHz to 10 GHz; a machine that is busy only seems slower.
            assert!((0.1..10.0).contains(&ns), "{ns} ns");
        }
    }

    #[test]
    fn a_processor_that_does_not_exist_has_no_cycle() {
        let there = crate::topology::allowed_cpus()[0];
        let found = super::cycles_ns(&[there, u32::MAX]);
        assert_eq!((found.len(), found[1]), (2, None));
    }
}
