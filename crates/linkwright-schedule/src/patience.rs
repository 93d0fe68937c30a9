//! Schedules that are no longer wanted.
//!
//! Over 2,000 ranks a schedule may have millions of operations, and finding the hazards among them takes up to a
//! minute. A search that runs out of time, or that Ctrl-C ends, must not wait for it. What is made within
//! [`while_wanted`] asks, every few thousand operations, whether it is still wanted; where it is not, its making ends
//! with [`ScheduleError::Unwanted`]. Rank-symmetric algorithms, whose hazards are found once for all ranks, do not ask:
//! they take a tenth of that time.

use crate::error::{Result, ScheduleError};
use std::cell::RefCell;
use std::rc::Rc;

/// Operations between two questions; they take about a millisecond.
const ASKED_EVERY: usize = 1 << 12;

type Wanted = Rc<dyn Fn() -> bool>;

thread_local! {
    static WANTED: RefCell<Option<Wanted>> = const { RefCell::new(None) };
}

/// The question of before, put back when a making ends, also by a panic.
struct Before(Option<Wanted>);

impl Drop for Before {
    fn drop(&mut self) {
        WANTED.set(self.0.take());
    }
}

/// What `make` gives. Schedules that it makes on this thread are abandoned as soon as `wanted` says no.
pub fn while_wanted<T>(wanted: impl Fn() -> bool + 'static, make: impl FnOnce() -> T) -> T {
    let _before = Before(WANTED.replace(Some(Rc::new(wanted))));
    make()
}

/// Refuse to go on behind `operations` of a schedule that is no longer wanted.
#[inline]
pub(crate) fn check(operations: usize) -> Result<()> {
    match operations % ASKED_EVERY == 0 && !wanted() {
        true => Err(ScheduleError::Unwanted),
        false => Ok(()),
    }
}

#[cold]
fn wanted() -> bool {
    let wanted = WANTED.with_borrow(Clone::clone);
    wanted.is_none_or(|wanted| wanted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives;
    use crate::Shape;
    use std::cell::Cell;

    /// Each of p ranks exchanges p / 2 times with a neighbour.
    fn exchange(ranks: u32) -> Result<usize> {
        let shape = Shape::new(ranks, u64::from(ranks));
        let made = collectives::build("allgather/neighbor_exchange", &shape)?;
        Ok(made.ops().len())
    }

    #[test]
    fn a_schedule_that_is_not_wanted_any_more_is_abandoned() {
        let asked = Rc::new(Cell::new(0));
        let counts = asked.clone();
        let twice = move || {
            counts.set(counts.get() + 1);
            counts.get() <= 2
        };
        assert_eq!(
            while_wanted(twice, || exchange(256)),
            Err(ScheduleError::Unwanted)
        );
        assert_eq!(asked.get(), 3);
        let whole = exchange(256);
        assert!(matches!(whole, Ok(operations) if operations >= 256 * 128));
        assert_eq!(while_wanted(|| true, || exchange(256)), whole);
    }

    #[test]
    fn questions_nest() {
        while_wanted(
            || false,
            || {
                assert!(while_wanted(|| true, || exchange(64)).is_ok());
                assert_eq!(exchange(64), Err(ScheduleError::Unwanted));
            },
        );
    }
}
