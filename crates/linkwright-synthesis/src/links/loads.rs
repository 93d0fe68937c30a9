//! Prices of links that make a search spread its traffic.
//!
//! The load of a link is the time that one unit of everything routed so far keeps it busy. A further use costs
//!
//! ```text
//!   price = 1 / capacity * exp(sharpness * (load / most - 1))        most: the load of the busiest link
//! ```
//!
//! so whatever is routed next avoids the busiest links. Routing, removing and routing again with a growing sharpness
//! comes close to the least possible load of the busiest link: the fractional optimum is what multiplicative weights
//! converge to, and here whole units are routed, so nothing has to be rounded.
//!
//! A pair whose rate is below that of its links is a link of its own.
//!
//! Source: Plotkin, Shmoys and Tardos, "Fast approximation algorithms for fractional packing and covering problems"
//! (Math. Oper. Res. 1995); Garg and Könemann, "Faster and simpler algorithms for multicommodity flow and other
//! fractional packing problems" (SIAM J. Comput. 2007).

use super::wires::Wires;

/// Loads and prices of all links, and behind them of all pairs.
pub(super) struct Loads<'a> {
    wires: &'a Wires,
    /// Nanoseconds for a gigabyte... that is, 1 / capacity in s/GB, by link.
    unit: Vec<f64>,
    load: Vec<f64>,
    price: Vec<f64>,
    most: f64,
    sharpness: f64,
}

impl<'a> Loads<'a> {
    pub fn new(wires: &'a Wires) -> Self {
        let rates = wires.pairs().iter().map(|pair| pair.rate);
        let all = wires.capacity().iter().copied().chain(rates);
        let unit: Vec<f64> = all.map(|rate| 1e9 / rate.max(1) as f64).collect();
        let mut loads = Loads {
            wires,
            load: vec![0.0; unit.len()],
            price: unit.clone(),
            unit,
            most: 1.0,
            sharpness: 0.0,
        };
        loads.sharpen(0.0);
        loads
    }

    /// Take the present loads as the measure of the prices from now on.
    pub fn sharpen(&mut self, sharpness: f64) {
        self.sharpness = sharpness;
        self.most = self.busiest().max(f64::MIN_POSITIVE);
        (0..self.unit.len()).for_each(|link| self.reprice(link));
    }

    /// Load of the busiest link, in seconds for a unit of 1 GB.
    pub fn busiest(&self) -> f64 {
        self.load.iter().copied().fold(0.0, f64::max)
    }

    /// Sum of all loads.
    pub fn total(&self) -> f64 {
        self.load.iter().sum()
    }

    /// What one more unit over `pair` costs.
    #[inline]
    pub fn cost(&self, pair: u32) -> f64 {
        let uses = self.wires.pair(pair).uses.iter();
        let links: f64 = uses
            .map(|&(link, weight)| f64::from(weight) * self.price[link as usize])
            .sum();
        links + self.price[self.wires.capacity().len() + pair as usize]
    }

    /// Route a unit over `pair`, or take it away with -1.
    pub fn add(&mut self, pair: u32, units: f64) {
        let wires = self.wires;
        for &(link, weight) in &wires.pair(pair).uses {
            self.change(link as usize, units * f64::from(weight));
        }
        self.change(wires.capacity().len() + pair as usize, units);
    }

    fn change(&mut self, link: usize, units: f64) {
        self.load[link] += units * self.unit[link];
        // Sums of equal terms come back to nothing, not to what rounding leaves of it.
        if self.load[link] < self.unit[link] * 1e-6 {
            self.load[link] = 0.0;
        }
        self.most = self.most.max(self.load[link]);
        self.reprice(link);
    }

    fn reprice(&mut self, link: usize) {
        let after = (self.load[link] + self.unit[link]) / self.most;
        let exponent = (self.sharpness * (after - 1.0)).clamp(-200.0, 200.0);
        self.price[link] = self.unit[link] * exponent.exp();
    }
}
