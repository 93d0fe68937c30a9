//! What a search sees of a network: pairs of endpoints, and the links that their messages share.
//!
//! ```text
//!   pair 0 -> 5      start, rate, latency, and the links of its route       a message takes
//!     uses           PLX 0 up, QPI, PLX 2 down                             start + bytes / rate + latency
//!   capacity         bytes per second of each link, shared by all pairs that use it
//! ```
//!
//! Memories may be endpoints after the ranks: ranks write there and read, and nothing needs to be there in the end.
//!
//! Switches cannot store: they are nothing but links that several pairs use. Where only some pairs have a route (an
//! NVLink that does not relay), the endpoints between forward whole chunks.

use crate::Result;
use linkwright_schedule::ScheduleError;

/// A directed pair of endpoints with a route.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Endpoint that sends.
    pub from: u32,
    /// Endpoint that receives.
    pub to: u32,
    /// Picoseconds before the first byte moves.
    pub start_ps: u64,
    /// Picoseconds from the departure of the last byte to its arrival.
    pub latency_ps: u64,
    /// Most bytes per second of one message.
    pub rate: u64,
    /// Links of the route, and how often each byte crosses them.
    pub uses: Vec<(u32, u32)>,
}

impl Pair {
    /// Picoseconds that `bytes` take between start and latency, alone on the machine.
    pub fn moving_ps(&self, bytes: u64) -> u64 {
        time_ps(bytes, self.rate)
    }

    /// Picoseconds from issue to arrival of `bytes`, alone on the machine.
    pub fn time_ps(&self, bytes: u64) -> u64 {
        self.start_ps + self.moving_ps(bytes) + self.latency_ps
    }
}

/// A network that cannot be searched, and why.
fn refused(problem: String) -> linkwright_sim::SimError {
    ScheduleError::Shape(problem).into()
}

/// Picoseconds that `bytes` take at `rate` bytes per second, rounded up.
pub(super) fn time_ps(bytes: u64, rate: u64) -> u64 {
    let ps = u128::from(bytes) * 1_000_000_000_000;
    ps.div_ceil(u128::from(rate)).min(u128::from(u64::MAX / 4)) as u64
}

/// All pairs of a network that have a route.
#[derive(Clone, Debug)]
pub struct Wires {
    endpoints: u32,
    /// The first endpoints are ranks, the others memories.
    ranks: u32,
    pairs: Vec<Pair>,
    /// Bytes per second of each link.
    capacity: Vec<u64>,
    /// By sender, its pairs.
    out: Vec<Vec<u32>>,
    /// Pair by sender and receiver; `u32::MAX` where there is no route.
    index: Vec<u32>,
}

impl Wires {
    /// The network of `endpoints` with links of these capacities.
    pub fn new(endpoints: u32, capacity: Vec<u64>, pairs: Vec<Pair>) -> Result<Self> {
        if endpoints == 0 {
            return Err(refused("no endpoints; at least 1 is needed".into()));
        }
        for pair in &pairs {
            check(pair, endpoints, &capacity)?;
        }
        let n = endpoints as usize;
        let (mut out, mut index) = (vec![Vec::new(); n], vec![u32::MAX; n * n]);
        for (number, pair) in (0..).zip(&pairs) {
            let place = pair.from as usize * n + pair.to as usize;
            if std::mem::replace(&mut index[place], number) == u32::MAX {
                out[pair.from as usize].push(number);
            } else {
                let problem = format!("endpoints {} and {} have two routes", pair.from, pair.to);
                return Err(refused(problem));
            }
        }
        let wires = Wires {
            endpoints,
            ranks: endpoints,
            pairs,
            capacity,
            out,
            index,
        };
        wires.check_connected(|_| true)?;
        Ok(wires)
    }

    /// A network in which every pair has a link of its own: (from, to, bytes per second).
    pub fn direct(endpoints: u32, links: &[(u32, u32, u64)], start_ps: u64) -> Result<Self> {
        let pair = |(link, &(from, to, rate)): (u32, &(u32, u32, u64))| Pair {
            from,
            to,
            start_ps,
            latency_ps: 0,
            rate,
            uses: vec![(link, 1)],
        };
        let pairs = (0..).zip(links).map(pair).collect();
        Wires::new(endpoints, links.iter().map(|link| link.2).collect(), pairs)
    }

    /// The same network, in which the endpoints after the first `ranks` are memories.
    pub fn with_ranks(self, ranks: u32) -> Self {
        Wires { ranks, ..self }
    }

    /// Number of ranks, which are the first endpoints.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// The rank that moves data over `pair`: the sender, or the reader of a memory.
    pub fn initiator(&self, pair: u32) -> u32 {
        let Pair { from, to, .. } = self.pair(pair);
        *if *from < self.ranks { from } else { to }
    }

    /// Number of endpoints.
    pub fn endpoints(&self) -> u32 {
        self.endpoints
    }

    /// All pairs with a route.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// One of them.
    pub fn pair(&self, number: u32) -> &Pair {
        &self.pairs[number as usize]
    }

    /// Pairs that `endpoint` sends over.
    pub fn out(&self, endpoint: u32) -> &[u32] {
        &self.out[endpoint as usize]
    }

    /// Bytes per second of each link.
    pub fn capacity(&self) -> &[u64] {
        &self.capacity
    }

    /// The pair from one endpoint to another.
    pub fn between(&self, from: u32, to: u32) -> Option<u32> {
        let place = from as usize * self.endpoints as usize + to as usize;
        Some(self.index[place]).filter(|&pair| pair != u32::MAX)
    }

    /// The same network without the pairs that `keep` drops; an error if that cuts it in parts.
    pub fn only(&self, keep: impl Fn(&Pair) -> bool) -> Result<Self> {
        self.check_connected(&keep)?;
        let kept = self.pairs.iter().filter(|pair| keep(pair)).cloned();
        let kept = Wires::new(self.endpoints, self.capacity.clone(), kept.collect())?;
        Ok(kept.with_ranks(self.ranks))
    }

    /// Whether the pairs that `keep` keeps connect all endpoints.
    pub fn connects(&self, keep: impl Fn(&Pair) -> bool) -> bool {
        self.check_connected(&keep).is_ok()
    }

    /// The same network with every message the other way.
    pub fn reversed(&self) -> Self {
        let mut reversed = self.clone();
        for pair in &mut reversed.pairs {
            std::mem::swap(&mut pair.from, &mut pair.to);
        }
        Wires::new(self.endpoints, reversed.capacity, reversed.pairs)
            .expect("as connected as the network itself")
            .with_ranks(self.ranks)
    }

    /// Every endpoint reaches every other one over pairs that `keep` keeps, relayed by endpoints.
    fn check_connected(&self, keep: impl Fn(&Pair) -> bool) -> Result<()> {
        for ahead in [true, false] {
            let mut seen = vec![false; self.endpoints as usize];
            seen[0] = true;
            let mut waiting = vec![0u32];
            while let Some(at) = waiting.pop() {
                for next in (0..self.endpoints).filter(|&next| next != at) {
                    let (from, to) = if ahead { (at, next) } else { (next, at) };
                    let pair = self.between(from, to).map(|pair| self.pair(pair));
                    if !seen[next as usize] && pair.is_some_and(&keep) {
                        seen[next as usize] = true;
                        waiting.push(next);
                    }
                }
            }
            if let Some(lost) = seen.iter().position(|&seen| !seen) {
                let (from, to) = if ahead { (0, lost) } else { (lost, 0) };
                return Err(refused(format!(
                    "the network is not connected: no route, however relayed, leads from endpoint {from} to endpoint \
                     {to}; choose another path, or fewer ranks"
                )));
            }
        }
        Ok(())
    }
}

fn check(pair: &Pair, endpoints: u32, capacity: &[u64]) -> Result<()> {
    let Pair { from, to, .. } = pair;
    let problem = |text: String| Err(refused(format!("endpoint {from} to {to}: {text}")));
    if *from >= endpoints || *to >= endpoints || from == to {
        return problem(format!("not two of the {endpoints} endpoints"));
    }
    if pair.rate == 0 {
        return problem("0 bytes per second; give the route a rate, or leave it out".into());
    }
    for &(link, weight) in &pair.uses {
        match capacity.get(link as usize) {
            None => return problem(format!("link {link} does not exist")),
            Some(0) => {
                return problem(format!(
                    "link {link} carries 0 bytes per second; leave its routes out"
                ))
            }
            Some(_) if weight == 0 => return problem(format!("link {link} is used 0 times")),
            Some(_) => {}
        }
    }
    Ok(())
}
