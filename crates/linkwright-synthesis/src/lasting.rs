//! Which gains last: the answer of a search is the fastest schedule whose gain does not hang on the digits of the file.
//!
//! ```text
//!   known, on the machine with its rates and times drawn again, 20 times      k_1 ... k_20    (Machine::varied)
//!   finalist, on the same machines                                            f_1 ... f_20
//!   gain of a draw                                                            k_i / f_i       a win from 1.02
//!   gain with serial starts                                                   both simulated with serial_starts
//! ```
//!
//! A gain *lasts* if it is a win in 95 % of the draws. Of the finalists, the fastest first, that is the answer whose
//! gain lasts and stays a win where the start-ups of a rank wait for each other, as long as it takes at most 10 % longer
//! than the fastest that lasts; otherwise that one; and where no gain lasts, the fastest of the known algorithms and
//! their transforms. No answer is slower than that.
//!
//! Draws come from the seed of the problem and are simulated side by side, so the answer is the same on any number of
//! threads. Where the time does not suffice for 20, there are fewer; a finalist that could not be judged is no answer,
//! unless none could be judged at all. What the draws leave out: the software costs of paths, and errors that
//! several links have in common.

use crate::candidate::{KNOWN, TRANSFORMED};
use crate::judge::{Judge, Winner};
use crate::kept::Kept;
use linkwright_core::clock::Instant;
use linkwright_core::random::Random;
use linkwright_core::{Machine, TimePs};
use linkwright_schedule::Schedule;
use linkwright_sim::{fabrics, Pricer};
use std::sync::Arc;

/// The least gain that counts as one.
pub const WIN: f64 = 1.02;
/// Machines that are drawn.
pub const DRAWS: usize = 20;
/// How far drawn rates and times are off at most.
pub const WITHIN: f64 = 0.2;
/// The share of the draws in which a gain that lasts is a win.
pub const MOST_DRAWS: f64 = 0.95;
/// How much longer than the fastest gain that lasts one may take that is a win with serial starts, too.
pub const DEARER: f64 = 1.1;

/// How much of a gain over the best known algorithm is left when the machine is not quite as its file says.
#[derive(Clone, Debug, PartialEq)]
pub struct Lasting {
    /// Machines that were drawn; none where the file holds for its own values only, or for lack of time.
    pub draws: usize,
    /// Those on which the gain is a win.
    pub wins: usize,
    /// The least gain on any of them.
    pub least: Option<f64>,
    /// The gain where the start-ups of a rank wait for each other.
    pub serial: f64,
}

impl Lasting {
    /// Whether it is a win in nearly all of the draws.
    pub fn lasts(&self) -> bool {
        self.wins as f64 >= MOST_DRAWS * self.draws as f64
    }

    /// Whether it is a win with serial starts.
    pub fn stays_serial(&self) -> bool {
        self.serial >= WIN
    }
}

/// What a search answers.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The schedule.
    pub winner: Winner,
    /// How its gain lasts; none of what has no gain, and of what could not be judged.
    pub lasting: Option<Lasting>,
}

/// The answer of a judge whose search is over, and the fastest schedule where that is another one. With `fastest`, the
/// fastest is the answer whether it lasts or not. None where there is no schedule at all.
pub fn answer(judge: &Judge, fastest: bool) -> Option<(Answer, Option<Answer>)> {
    let incumbent = judge.incumbent()?.clone();
    let gains = |known: &&Winner| judge.time_left() && is_win(known.time, incumbent.time);
    let plain = |winner: Winner, lasting| Answer { winner, lasting };
    let known = judge.known().filter(gains);
    let Some(yardstick) = known.and_then(|known| Yardstick::new(judge, known)) else {
        return Some((plain(incumbent, None), None));
    };
    let Some(first) = yardstick.judge(&incumbent.kept()) else {
        return Some((plain(incumbent, None), None));
    };
    if fastest || (first.lasts() && first.stays_serial()) {
        return Some((plain(incumbent, Some(first)), None));
    }
    let lasting = first.lasts().then(|| Answer {
        winner: incumbent.clone(),
        lasting: Some(first.clone()),
    });
    let best = chosen(&yardstick, &incumbent, lasting);
    let passed = (best.winner.time != incumbent.time).then(|| plain(incumbent, Some(first)));
    Some((best, passed))
}

/// The answer among the finalists; `best` is the incumbent, if its gain lasts.
fn chosen(yardstick: &Yardstick<'_>, incumbent: &Winner, mut best: Option<Answer>) -> Answer {
    let judge = yardstick.judge;
    let is_known = |one: &&Kept| [KNOWN, TRANSFORMED].contains(&one.draft.method);
    let known = judge.shortlist().iter().find(is_known);
    let most = known.map_or(yardstick.known.time, |one| one.time).0 as f64;
    for finalist in judge.shortlist() {
        let dearer = |best: &Answer| most.min(DEARER * best.winner.time.0 as f64);
        let limit = best.as_ref().map_or(most, dearer);
        if finalist.time.0 as f64 > limit || !is_win(yardstick.known.time, finalist.time) {
            break;
        }
        if finalist.time == incumbent.time && finalist.draft.method == incumbent.candidate.method {
            continue;
        }
        let Some(lasting) = yardstick.judge(finalist) else {
            break;
        };
        // Behind the first that lasts, only what is a win with serial starts is better.
        if lasting.lasts() && (best.is_none() || lasting.stays_serial()) {
            let is_last = lasting.stays_serial();
            best = yardstick.proved(finalist, Some(lasting)).or(best);
            if is_last {
                break;
            }
        }
    }
    best.or_else(|| {
        let wins = is_win(yardstick.known.time, known?.time);
        yardstick.proved(known?, wins.then(|| yardstick.judge(known?)).flatten())
    })
    .unwrap_or_else(|| Answer {
        winner: yardstick.known.clone(),
        lasting: None,
    })
}

/// Whether `time` is a gain over `known`.
fn is_win(known: TimePs, time: TimePs) -> bool {
    known > time && known.0 as f64 >= WIN * time.0 as f64
}

/// Where the gain of the incumbent is none with serial starts: what a schedule that wins there, too, may take as
/// described, and with serial starts.
pub(crate) fn serial_limits(judge: &Judge) -> Option<(TimePs, TimePs)> {
    let (best, known) = (judge.incumbent()?, judge.known()?);
    let time = |one: &Winner| {
        let kept = one.kept();
        serial(judge, &judge.schedule(&kept.draft).ok()?, &kept)
    };
    let serial = time(known)?;
    let is_lost = is_win(known.time, best.time) && !is_win(serial, time(best)?);
    let limits = (best.time.0 as f64 * DEARER, serial.0 as f64 / WIN);
    is_lost.then_some((TimePs(limits.0 as u64), TimePs(limits.1 as u64)))
}

/// The best known algorithm on drawn machines, and with serial starts.
struct Yardstick<'a> {
    judge: &'a Judge,
    known: &'a Winner,
    /// Drawn machines, and what the best known algorithm takes there.
    drawn: Vec<(Arc<Machine>, TimePs)>,
    serial: TimePs,
}

impl<'a> Yardstick<'a> {
    /// None for lack of time.
    fn new(judge: &'a Judge, known: &'a Winner) -> Option<Self> {
        let kept = known.kept();
        let (schedule, now) = (judge.schedule(&kept.draft).ok()?, Instant::now());
        // As much again is needed for a finalist, and some for the next ones.
        let part = judge.remaining().map(|left| left / 3);
        let until = part.and_then(|part| now.checked_add(part));
        let mut random = Random::new(judge.problem().seed);
        let seeds: Vec<u64> = (0..DRAWS).map(|_| random.bits()).collect();
        let draw = |place: usize| {
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            if is_late || !judge.time_left() {
                return Some(None);
            }
            let machine = drawn(judge, seeds[place])?;
            let time = timed(judge, (&schedule, &kept), &machine, until);
            Some(time.map(|time| (machine, time)))
        };
        let draws: Option<Vec<_>> = judge
            .each(DRAWS, |place, _| draw(place))
            .into_iter()
            .collect();
        Some(Yardstick {
            drawn: draws.into_iter().flatten().flatten().collect(),
            serial: serial(judge, &schedule, &kept)?,
            judge,
            known,
        })
    }

    /// A finalist as the answer, if it is right.
    fn proved(&self, finalist: &Kept, lasting: Option<Lasting>) -> Option<Answer> {
        let Kept { draft, issue, time } = finalist;
        let winner = self.judge.proved(draft, *issue, *time).ok()?;
        Some(Answer { winner, lasting })
    }

    /// How the gain of a finalist lasts; none for lack of time, or of what cannot run.
    fn judge(&self, finalist: &Kept) -> Option<Lasting> {
        let judge = self.judge;
        let schedule = judge
            .time_left()
            .then(|| judge.schedule(&finalist.draft).ok())??;
        let gain = |place: usize| {
            let (machine, known) = &self.drawn[place];
            let time = timed(judge, (&schedule, finalist), machine, judge.until())?;
            Some(known.0 as f64 / time.0 as f64)
        };
        let gains = judge.each(self.drawn.len(), |place, _| gain(place));
        let gains = gains.into_iter().collect::<Option<Vec<f64>>>()?;
        let serial = serial(judge, &schedule, finalist)?;
        Some(Lasting {
            draws: gains.len(),
            wins: gains.iter().filter(|gain| **gain >= WIN).count(),
            least: gains.iter().copied().reduce(f64::min),
            serial: self.serial.0 as f64 / serial.0 as f64,
        })
    }
}

/// The machine, drawn again; none where its file or its fabric holds for its own values only.
fn drawn(judge: &Judge, seed: u64) -> Option<Arc<Machine>> {
    let varied = judge
        .problem()
        .machine
        .varied(WITHIN, &mut Random::new(seed));
    let machine = varied.ok()?;
    fabrics::build(&machine).ok()?;
    Some(Arc::new(machine))
}

/// What a lowered schedule takes on `machine`; none where the clock stops it.
fn timed(
    judge: &Judge,
    (schedule, kept): (&Schedule, &Kept),
    machine: &Arc<Machine>,
    until: Option<Instant>,
) -> Option<TimePs> {
    let options = judge
        .problem()
        .options(kept.issue, kept.draft.path.as_deref());
    let mut pricer = Pricer::new(machine.clone());
    pricer.time(schedule, &options, TimePs::MAX, until).ok()
}

/// What a lowered schedule takes where the start-ups of a rank wait for each other.
fn serial(judge: &Judge, schedule: &Schedule, kept: &Kept) -> Option<TimePs> {
    let mut options = judge
        .problem()
        .options(kept.issue, kept.draft.path.as_deref());
    options.serial_starts = true;
    let mut pricer = Pricer::new(judge.problem().machine.clone());
    pricer
        .time(schedule, &options, TimePs::MAX, judge.until())
        .ok()
}
