//! How the chunks of a transfer pass the pieces of its route.
//!
//! A route is one *pass*, or several where data are stored in between: into host memory and out
//! of it again. Chunks follow each other, so while chunk i is on the second pass chunk i+1 is on the first:
//!
//! ```text
//!   pass 0   c0 c1 c2 c3               fill     c bytes       pass 0
//!   pass 1      c0 c1 c2 c3            steady   S - c bytes   passes 0 and 1 together
//!                                      drain    c bytes       pass 1
//!
//!   T = (S + c) / rate, with c = min(S, chunk), where both passes are equally fast
//! ```
//!
//! A coalesced transfer has only these phases, however many its chunks; in each, it uses the resources of
//! all passes of the phase. If the first pass is the slower one, the last chunk finds the second pass idle,
//! which shortens the drain. [`serial`] moves one chunk at a time, for comparison: both agree except for the
//! grain of sharing.

use super::job::time;
use linkwright_core::TimePs;

/// Passes `first..=last` move `bytes` together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phase {
    pub first: usize,
    pub last: usize,
    pub bytes: u64,
}

/// The phases of `bytes` in chunks of `chunk` over passes with these ceilings, in order.
pub(super) fn coalesced(bytes: u64, chunk: u64, ceilings: &[u64]) -> Vec<Phase> {
    let passes = ceilings.len();
    if bytes == 0 || passes == 0 {
        return Vec::new();
    }
    let phase = |first, last, bytes| Phase { first, last, bytes };
    if passes == 1 {
        return vec![phase(0, 0, bytes)];
    }
    let chunk = chunk.min(bytes);
    let chunks = bytes.div_ceil(chunk);
    let rest = bytes - (chunks - 1) * chunk;
    let slots = chunks + passes as u64 - 1;
    let slot = |j: u64, size| {
        let first = (j + 1).saturating_sub(chunks) as usize;
        phase(first, (j as usize).min(passes - 1), size)
    };
    if chunks < passes as u64 {
        let size = |j| {
            if j + 1 == slots || chunks == 1 {
                rest
            } else {
                chunk
            }
        };
        return (0..slots).map(|j| slot(j, size(j))).collect();
    }
    let filled = passes as u64 - 1;
    let mut phases: Vec<Phase> = (0..filled).map(|j| slot(j, chunk)).collect();
    phases.push(phase(0, passes - 1, bytes - filled * chunk));
    for j in chunks..slots {
        let last = if j + 1 == slots {
            drain(chunk, rest, ceilings)
        } else {
            chunk
        };
        phases.push(slot(j, last));
    }
    phases
}

/// Bytes of the last phase: the last chunk, and the rest of the one before it.
fn drain(chunk: u64, rest: u64, ceilings: &[u64]) -> u64 {
    let (slowest, last) = (ceilings.iter().min().copied(), ceilings.last().copied());
    let (slowest, last) = (slowest.unwrap_or(1).max(1), last.unwrap_or(1));
    let covered = u128::from(rest) * u128::from(last) / u128::from(slowest);
    rest + chunk.saturating_sub(u64::try_from(covered).unwrap_or(u64::MAX))
}

/// How long the chunks take one by one, alone on the machine.
pub(super) fn serial(bytes: u64, chunk: u64, ceilings: &[u64]) -> TimePs {
    let mut free = vec![TimePs::ZERO; ceilings.len()];
    for index in 0..bytes.div_ceil(chunk.max(1)) {
        let mut ready = TimePs::ZERO;
        for (free, &rate) in free.iter_mut().zip(ceilings) {
            ready = ready.max(*free) + time(nth(bytes, chunk, index), rate);
            *free = ready;
        }
    }
    free.last().copied().unwrap_or(TimePs::ZERO)
}

/// Bytes of chunk number `index`.
pub(super) fn nth(bytes: u64, chunk: u64, index: u64) -> u64 {
    chunk.min(bytes - index * chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn total(bytes: u64, chunk: u64, ceilings: &[u64]) -> TimePs {
        let rate = |phase: &Phase| ceilings[phase.first..=phase.last].iter().min().copied();
        (coalesced(bytes, chunk, ceilings).iter())
            .map(|phase| time(phase.bytes, rate(phase).unwrap()))
            .sum()
    }

    #[test]
    fn a_staged_copy_takes_one_chunk_longer() {
        // 4 MiB in chunks of 1 MiB at 1 byte per ns: (4 + 1) MiB.
        let (bytes, rate) = (4 << 20, 1_000_000_000);
        assert_eq!(
            total(bytes, 1 << 20, &[rate, rate]),
            TimePs((5 << 20) * 1000)
        );
        // One chunk passes twice.
        assert_eq!(total(1000, 1 << 20, &[rate, rate]), TimePs(2_000_000));
    }

    proptest! {
        #[test]
        fn two_passes_are_exact(
            bytes in 1u64..5_000_000, chunk in 1_000u64..500_000, a in 1u64..40, b in 1u64..40,
        ) {
            let ceilings = [a * 1_000_000_000, b * 1_000_000_000];
            let (one, other) = (total(bytes, chunk, &ceilings), serial(bytes, chunk, &ceilings));
            let off = one.0.abs_diff(other.0);
            // Whole bytes, and a picosecond for each chunk.
            prop_assert!(off <= 2_000 + bytes.div_ceil(chunk) * 2, "{one} and {other}");
        }

        #[test]
        fn three_equal_passes_are_within_a_chunk(bytes in 1u64..5_000_000, chunk in 1_000u64..500_000) {
            let ceilings = [1_000_000_000; 3];
            let (one, other) = (total(bytes, chunk, &ceilings), serial(bytes, chunk, &ceilings));
            prop_assert!(one.0.abs_diff(other.0) <= 2 * time(chunk.min(bytes), 1_000_000_000).0);
        }
    }
}
