//! One time for all ranks: each rank's clock against that of rank 0.
//!
//! ```text
//!   rank 0   t0 ---\              /--> t2        offset = (t0 + t2) / 2 - t1
//!   rank r          \--> t1 -----/               error <= (t2 - t0) / 2
//! ```
//!
//! The fastest of several round trips counts: it was delayed least, so its two directions differ least.
//! Their difference cannot be measured, hence half the round trip is the residual
//! error. Clocks are compared before and after each experiment; how far an offset moved meanwhile (clocks of
//! two hosts drift by some microseconds per second) is added to the error.
//!
//! The clock is the kernel's monotonic one: the processes of a host share it, and hosts discipline
//! its rate. Durations are taken with the finer [`crate::timer::Clock`].
//!
//! Source: Hunold and Carpen-Amarie, "Reproducible MPI benchmarking is still not as easy as you
//! think" (TPDS 2016); Hoefler, Schneider and Lumsdaine, "Accurately measuring collective
//! operations at massive scale" (IPDPS 2008).

use super::library::{Group, Library};
use crate::error::Result;
use crate::sampling::median;

/// Round trips per rank.
const ROUND_TRIPS: usize = 30;

/// A rank's relation to the common time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offset {
    /// Time of rank 0 = own time + this.
    pub to_common_ns: i64,
    /// The largest error of any rank.
    pub error_ns: f64,
    /// Median round trip between ranks 0 and 1.
    pub round_trip_ns: f64,
}

/// The kernel's monotonic clock.
#[inline]
pub(super) fn now_ns() -> i64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Finds the offset of every rank, one after the other; all ranks call it together.
pub(super) fn synchronise(library: &Library, group: &Group) -> Result<Offset> {
    let mut own = Offset::default();
    for rank in 1..group.size {
        if group.rank == 0 {
            let found = lead(library, group, rank)?;
            own.error_ns = own.error_ns.max(found.error_ns);
            if rank == 1 {
                own.round_trip_ns = found.round_trip_ns;
            }
        } else if group.rank == rank {
            own = follow(library, group)?;
        }
    }
    let mut all = [0.0; 2];
    library.max(group, &[own.error_ns, own.round_trip_ns], &mut all)?;
    [own.error_ns, own.round_trip_ns] = all;
    Ok(own)
}

fn lead(library: &Library, group: &Group, rank: u32) -> Result<Offset> {
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    let mut best = (i64::MAX, 0);
    for _ in 0..ROUND_TRIPS {
        let mut theirs = [0];
        let sent = now_ns();
        library.send(group, rank, &[sent])?;
        library.recv(group, rank, &mut theirs)?;
        let back = now_ns();
        trips.push((back - sent) as f64);
        best = best.min((back - sent, sent + (back - sent) / 2 - theirs[0]));
    }
    let (trip, to_common_ns) = best;
    library.send(group, rank, &[to_common_ns])?;
    Ok(Offset {
        to_common_ns,
        error_ns: trip as f64 / 2.0,
        round_trip_ns: median(&mut trips).expect("some round trips"),
    })
}

fn follow(library: &Library, group: &Group) -> Result<Offset> {
    let mut received = [0];
    for _ in 0..ROUND_TRIPS {
        library.recv(group, 0, &mut received)?;
        library.send(group, 0, &[now_ns()])?;
    }
    library.recv(group, 0, &mut received)?;
    Ok(Offset {
        to_common_ns: received[0],
        ..Offset::default()
    })
}
