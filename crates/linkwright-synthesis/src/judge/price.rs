//! The price of one draft: made, lowered, and simulated under each of its policies until it is slower.

use super::{Judge, MOST_OPERATIONS};
use crate::candidate::Draft;
use crate::verdict::Verdict;
use crate::Result;
use linkwright_core::clock::Instant;
use linkwright_core::{Issue, TimePs};
use linkwright_schedule::ir::OpKind;
use linkwright_schedule::patience::while_wanted;
use linkwright_schedule::{Schedule, ScheduleError};
use linkwright_sim::Placement;
use linkwright_sim::{lowered, How, Pricer, SimError};
use std::borrow::Cow;
use std::sync::atomic::Ordering;
use std::sync::Arc;

impl Judge {
    /// The verdict on one draft, and the policy with which it takes least. What is made or simulated at `until`, or
    /// when the search is to end, is abandoned; without `until` nothing is.
    pub(super) fn price_one(
        &self,
        draft: &Draft,
        pricer: &mut Pricer,
        stop_at: TimePs,
        until: Option<Instant>,
    ) -> (Verdict, Issue) {
        let mut best = (Verdict::Slower, Issue::default());
        let refused = |why: SimError| match why {
            SimError::Schedule(ScheduleError::Unwanted) => (Verdict::Late, Issue::default()),
            why => (Verdict::Refused(why.to_string()), Issue::default()),
        };
        if draft.operations > MOST_OPERATIONS {
            let problem = format!(
                "about {} operations; at most {MOST_OPERATIONS} are made, use fewer ranks or slices",
                draft.operations
            );
            return (Verdict::Refused(problem), Issue::default());
        }
        let (made, path) = (
            self.within(until, || self.made(draft)),
            draft.path.as_deref(),
        );
        let schedule = match &made {
            Ok(made) => self.within(until, || self.lower(made, path)),
            Err(why) => return refused(why.clone()),
        };
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(why) => return refused(why),
        };
        for issue in draft
            .issues
            .iter()
            .map(|&issue| self.awaited(issue, &schedule, path))
        {
            let (answered, stop_at) = (best.0.time().is_some(), best.0.time().unwrap_or(stop_at));
            let until = self.until.filter(|_| answered).or(until);
            let options = self.problem.options(issue, path);
            match self.time(pricer, &schedule, options, (stop_at, until)) {
                Ok(time) if time < stop_at => best = (Verdict::Time(time), issue),
                Ok(_) | Err(SimError::Stopped { .. }) => {}
                Err(why) => return refused(why),
            }
        }
        match (best.0 == Verdict::Slower, until) {
            (true, Some(until)) if Instant::now() >= until => (Verdict::Late, best.1),
            _ => best,
        }
    }

    /// The policy with which a rank pays for waiting for what it reads: `unlimited` charges no barrier for that.
    fn awaited(&self, issue: Issue, schedule: &Schedule, path: Option<&str>) -> Issue {
        let named = path.and_then(|name| self.problem.machine.path(name));
        let waiting_costs = named.unwrap_or(self.problem.path()).barrier > TimePs::ZERO;
        let reads = || schedule.ops().iter().any(|op| op.kind == OpKind::Get);
        match issue {
            Issue::Unlimited if waiting_costs && reads() => Issue::Batch(schedule.ranks),
            issue => issue,
        }
    }

    fn time(
        &self,
        pricer: &mut Pricer,
        schedule: &Schedule,
        options: How,
        (stop_at, until): (TimePs, Option<Instant>),
    ) -> Result<TimePs> {
        let Some(share) = self.serial_share else {
            return pricer.time(schedule, &options, stop_at, until);
        };
        let of = |time: TimePs, factor: f64| TimePs((time.0 as f64 * factor) as u64);
        let serial = pricer.time(schedule, &options, of(stop_at, 1.0 / share), until)?;
        let described = How {
            serial_starts: false,
            ..options
        };
        let time = pricer.time(schedule, &described, stop_at, until)?;
        Ok(time.max(of(serial, share)))
    }

    /// What `make` makes, given up at `until` or when the search is to end.
    fn within<T>(&self, until: Option<Instant>, make: impl FnOnce() -> T) -> T {
        let stop = self.stop.clone();
        let goes_on = move |until| Instant::now() < until && !stop.load(Ordering::Relaxed);
        while_wanted(move || until.is_none_or(&goes_on), make)
    }

    pub(super) fn made(&self, draft: &Draft) -> Result<Arc<Schedule>> {
        (draft.make)()
    }

    pub(super) fn lower<'a>(
        &self,
        made: &'a Schedule,
        path: Option<&str>,
    ) -> Result<Cow<'a, Schedule>> {
        let path = path.or(self.problem.path.as_deref());
        let lowered = lowered(made, &self.problem.machine, path, &Placement::Identity)?;
        Ok(lowered.map_or(Cow::Borrowed(made), Cow::Owned))
    }
}
