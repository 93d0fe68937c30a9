//! Sharing alone: hand-derived cases with the algebra, and invariants.

use super::fair::Fair;
use super::fifo::Fifo;
use super::job::{time, Job};
use super::uses::{Fractions, Use, Uses};
use linkwright_core::{Machine, TimePs};
use proptest::prelude::*;

/// Fair sharing and the resources that its jobs use.
struct Case {
    fair: Fair,
    uses: Uses,
}

impl Case {
    fn new(capacity: &[u64]) -> Self {
        let fractions = Fractions::new(capacity, true);
        Case {
            fair: Fair::new(capacity, &fractions, None),
            uses: Uses::new(fractions),
        }
    }

    fn enter(&mut self, now: TimePs, token: u32, bytes: u64, ceiling: u64, uses: &[(u32, u32)]) {
        let job = job(&mut self.uses, token, bytes, ceiling, uses);
        (self.fair).enter(now, job, self.uses.of(job.uses));
    }

    fn next(&mut self) -> Option<TimePs> {
        self.fair.next(|job| self.uses.of(job.uses))
    }

    fn pop_at(&mut self, at: TimePs) -> Option<u32> {
        let uses = |job: &Job| self.uses.of(job.uses);
        self.fair.pop_at(at, uses).map(|job| job.token)
    }

    fn rates(&mut self) -> Vec<(u32, u64)> {
        self.fair.rates(|job| self.uses.of(job.uses))
    }
}

fn job(all: &mut Uses, token: u32, bytes: u64, ceiling: u64, uses: &[(u32, u32)]) -> Job {
    let each = uses
        .iter()
        .map(|&(resource, weight)| Use::new(resource, weight));
    Job {
        token,
        pass: 0,
        bytes,
        ceiling,
        uses: all.add(|all| all.extend(each)),
    }
}

fn rates(capacity: &[u64], jobs: &[(u64, &[(u32, u32)])]) -> Vec<u64> {
    let mut case = Case::new(capacity);
    for (token, &(ceiling, uses)) in (0u32..).zip(jobs) {
        case.enter(TimePs::ZERO, token, 1000, ceiling, uses);
    }
    case.rates().into_iter().map(|(_, rate)| rate).collect()
}

#[test]
fn flows_share_links_max_min() {
    // a over both links of 100 and 60, b over the first, c over the second.
    //   second link first: a = c = 60 / 2 = 30; then b = 100 - 30 = 70
    let flows: &[(u64, &[_])] = &[(100, &[(0, 1), (1, 1)]), (100, &[(0, 1)]), (60, &[(1, 1)])];
    assert_eq!(rates(&[100, 60], flows), [30, 70, 30]);
    // 120 for three, of which one wants 10: (120 - 10) / 2 = 55.
    let flows: &[(u64, &[_])] = &[(200, &[(0, 1)]), (10, &[(0, 1)]), (200, &[(0, 1)])];
    assert_eq!(rates(&[120], flows), [55, 10, 55]);
    // The first uses the link twice: 2 r + r = 90, so both have 30 and the first takes 60 of it.
    assert_eq!(rates(&[90], &[(90, &[(0, 2)]), (90, &[(0, 1)])]), [30, 30]);
    // Links of 10, 20, 30; flows over (0), (0, 1), (1, 2), (2).
    //   link 0: 5 each; link 1: 20 - 5 = 15 for the third; link 2: 30 - 15 = 15 for the fourth
    let (first, second, third) = ((0, 1), (1, 1), (2, 1));
    let ways: [&[_]; 4] = [&[first], &[first, second], &[second, third], &[third]];
    assert_eq!(
        rates(&[10, 20, 30], &ways.map(|way| (99, way))),
        [5, 5, 15, 15]
    );
}

#[test]
fn a_late_flow_halves_the_rate_and_an_early_end_gives_it_back() {
    // 1 byte per ns. a: 1000 bytes from 0; b: 200 bytes from 500.
    //   to 500: a has 500 left; both at 1/2 until b ends at 500 + 400 = 900, a has 300 left; end 1200
    let mut case = Case::new(&[1_000_000_000]);
    case.enter(TimePs::ZERO, 0, 1000, 1_000_000_000, &[(0, 1)]);
    assert_eq!(case.next(), Some(TimePs::from_ns(1000)));
    case.enter(TimePs::from_ns(500), 1, 200, 1_000_000_000, &[(0, 1)]);
    assert_eq!(case.next(), Some(TimePs::from_ns(900)));
    assert_eq!(case.pop_at(TimePs::from_ns(900)), Some(1));
    assert_eq!(case.next(), Some(TimePs::from_ns(1200)));
    assert_eq!(case.pop_at(TimePs::from_ns(1200)), Some(0));
    assert_eq!(case.next(), None);
}

#[test]
fn a_queue_serves_one_after_another_and_blocks_at_its_head() {
    // a holds links 0 and 1 until 100; b waits for 0 and holds up c at 2, though 2 is idle.
    let (mut fifo, mut all) = (
        Fifo::new(3, None),
        Uses::new(Fractions::new(&[1; 3], false)),
    );
    let plan = [(100, [(0, 1), (1, 1)]), (50, [(0, 1), (2, 1)])];
    for (token, (bytes, uses)) in (0..).zip(plan) {
        let job = job(&mut all, token, bytes, 1_000_000_000, &uses);
        fifo.enter(TimePs::ZERO, job, all.of(job.uses));
    }
    let last = job(&mut all, 2, 10, 1_000_000_000, &[(2, 1)]);
    fifo.enter(TimePs::ZERO, last, all.of(last.uses));
    let mut ends = Vec::new();
    while let Some(at) = fifo.next() {
        let ended = fifo.pop_at(at, |job| all.of(job.uses));
        ends.push((ended.unwrap().token, at.0 / 1000));
    }
    assert_eq!(ends, [(0, 100), (1, 150), (2, 160)]);
}

/// Start in ns, bytes, ceiling, links as bits.
type Entry = (u64, u64, u64, u8);
type Plan = Vec<Entry>;

const LINKS: usize = 5;

fn uses(bits: u8) -> Vec<(u32, u32)> {
    (0..LINKS as u32)
        .filter(|i| bits >> i & 1 == 1)
        .map(|i| (i, 1 + i % 2))
        .collect()
}

/// Ends by token, checking the rates after every event.
fn drive(capacity: &[u64], plan: &Plan) -> Vec<TimePs> {
    let mut case = Case::new(capacity);
    let mut waiting: Vec<(u32, &Entry)> = (0u32..).zip(plan).collect();
    waiting.sort_by_key(|(token, entry)| (entry.0, *token));
    let mut waiting = waiting.into_iter().peekable();
    let mut ends = vec![TimePs::ZERO; plan.len()];
    loop {
        check(&mut case, capacity, plan);
        let (own, new) = (
            case.next(),
            waiting.peek().map(|(_, entry)| TimePs::from_ns(entry.0)),
        );
        match (own, new) {
            (None, None) => return ends,
            (Some(at), new) if new.is_none_or(|new| at <= new) => {
                while let Some(token) = case.pop_at(at) {
                    ends[token as usize] = at;
                }
            }
            (_, Some(at)) => {
                let (token, &(_, bytes, ceiling, bits)) = waiting.next().unwrap();
                case.enter(at, token, bytes, ceiling, &uses(bits));
            }
            (Some(_), None) => unreachable!("the second case takes it"),
        }
    }
}

fn check(case: &mut Case, capacity: &[u64], plan: &Plan) {
    let rates = case.rates();
    // The same jobs have the same rates whatever came before.
    let mut fresh = Case::new(capacity);
    for &(token, _) in &rates {
        let (_, bytes, ceiling, bits) = plan[token as usize];
        fresh.enter(TimePs::ZERO, token, bytes, ceiling, &uses(bits));
    }
    assert_eq!(fresh.rates(), rates);
    let load = |link: usize| -> u64 {
        let of = |&(token, rate): &(u32, u64)| {
            let own = uses(plan[token as usize].3);
            own.iter()
                .filter(|u| u.0 as usize == link)
                .map(|u| rate * u64::from(u.1))
                .sum::<u64>()
        };
        rates.iter().map(of).sum()
    };
    let loads: Vec<u64> = (0..LINKS).map(load).collect();
    for (link, &capacity) in capacity.iter().enumerate() {
        assert!(
            loads[link] <= capacity,
            "link {link} carries {} of {capacity}",
            loads[link]
        );
    }
    for &(token, rate) in &rates {
        let (_, _, ceiling, bits) = plan[token as usize];
        assert!(rate > 0 && rate <= ceiling);
        // No flow can have more: it is at its ceiling, or at a full link on which no flow has more.
        let bottleneck = uses(bits).iter().any(|&(link, _)| {
            let link = link as usize;
            let on = |t: u32| {
                uses(plan[t as usize].3)
                    .iter()
                    .any(|u| u.0 as usize == link)
            };
            let rest = capacity[link] - loads[link];
            let most = rates
                .iter()
                .filter(|(t, _)| on(*t))
                .map(|&(_, r)| r)
                .max()
                .unwrap();
            // Rates are whole bytes per second, so a full link may have a few to spare.
            rest <= 2 * plan.len() as u64 && rate + 2 * plan.len() as u64 >= most
        });
        assert!(
            rate == ceiling || bottleneck,
            "flow {token} could have more than {rate}"
        );
    }
}

proptest! {
    #[test]
    fn rates_are_max_min_and_no_flow_beats_an_idle_machine(
        capacity in proptest::collection::vec(1_000_000u64..50_000_000_000, LINKS),
        plan in proptest::collection::vec((0u64..2_000, 1u64..100_000, 1_000_000u64..60_000_000_000, 1u8..32), 1..24),
    ) {
        let plan: Plan = plan.into_iter().map(|(at, bytes, ceiling, bits)| {
            let most = uses(bits).iter().map(|&(l, w)| capacity[l as usize] / u64::from(w)).min().unwrap();
            (at, bytes, ceiling.min(most), bits)
        }).collect();
        let ends = drive(&capacity, &plan);
        for (end, (at, bytes, ceiling, _)) in ends.iter().zip(&plan) {
            prop_assert!(*end >= TimePs::from_ns(*at) + time(*bytes, *ceiling));
        }
        // No link moved more than it can between the first start and the last end.
        let first = plan.iter().map(|entry| entry.0).min().unwrap();
        let last = ends.iter().max().unwrap();
        for (link, &capacity) in capacity.iter().enumerate() {
            let of = |entry: &Entry| {
                uses(entry.3).iter().filter(|u| u.0 as usize == link).map(|u| entry.1 * u64::from(u.1)).sum::<u64>()
            };
            let bytes: u64 = plan.iter().map(of).sum();
            prop_assert!(TimePs::from_ns(first) + time(bytes, capacity) <= *last + TimePs(1000));
        }
        prop_assert_eq!(drive(&capacity, &plan), ends);
    }
}

#[test]
fn an_unknown_name_comes_with_the_known_ones() {
    let text = include_str!("../../../tests/flow/relays.toml");
    let links = "no class of links `mesh`; known: direct, tree";
    let transport = "no transport `nvlink`; known: relayed, staged";
    let network = "no network `b`; known: ";
    for (there, wrong, says) in [
        ("links = [\"direct\"]", "links = [\"mesh\"]", links),
        ("route = [\"hub\"]", "transport = \"nvlink\"", transport),
        ("route = [\"hub\"]", "networks = [\"b\"]", network),
    ] {
        let machine = Machine::parse(&text.replace(there, wrong), "relays.toml").unwrap();
        let error = super::file::read(&machine).err().unwrap().to_string();
        assert!(error.contains(says), "{error}");
    }
}
