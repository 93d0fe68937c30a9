//! From a message to packets: contiguous runs, each cut at the largest payload.

/// Cuts a message of `runs` contiguous runs into packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    run_bytes: u64,
    /// Runs that hold one byte more.
    longer: u64,
    runs: u64,
    run: u64,
    offset: u64,
}

impl Cut {
    pub fn new(bytes: u64, runs: u32) -> Self {
        // One run is by far the commonest case, and divisions cost most here.
        let (runs, run_bytes, longer) = match (runs as u64).clamp(1, bytes.max(1)) {
            1 => (1, bytes, 0),
            runs => (runs, bytes / runs, bytes % runs),
        };
        Cut {
            run_bytes,
            longer,
            runs,
            run: 0,
            offset: 0,
        }
    }

    /// Number of packets of at most `limit` bytes.
    pub fn packets(&self, limit: u64) -> u64 {
        if self.runs == 1 && self.run_bytes <= limit {
            return 1;
        }
        let of = |bytes: u64| bytes.div_ceil(limit).max(1);
        self.longer * of(self.run_bytes + 1) + (self.runs - self.longer) * of(self.run_bytes)
    }

    /// The packets as (how many, bytes of each), the last packet in the last group.
    pub fn groups(&self, limit: u64) -> [(u64, u64); 4] {
        // A run ends with a packet of 1 to `limit` bytes (or none, if the run is empty).
        let of = |runs: u64, bytes: u64| {
            let whole = bytes.saturating_sub(1) / limit;
            [(runs * whole, limit), (runs, bytes - whole * limit)]
        };
        let long = of(self.longer, self.run_bytes + 1);
        let short = of(self.runs - self.longer, self.run_bytes);
        [long[0], long[1], short[0], short[1]]
    }

    /// Bytes of the next packet; `None` after the last.
    pub fn next(&mut self, limit: u64) -> Option<u64> {
        if self.run == self.runs {
            return None;
        }
        let run_bytes = self.run_bytes + (self.run < self.longer) as u64;
        let bytes = (run_bytes - self.offset).min(limit);
        self.offset += bytes;
        if self.offset == run_bytes {
            self.run += 1;
            self.offset = 0;
        }
        Some(bytes)
    }

    /// Whether the last packet has been cut.
    pub fn is_done(&self) -> bool {
        self.run == self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_those_counted() {
        for (bytes, runs) in [(0, 1), (1, 3), (100, 3), (8192, 1), (8193, 1), (50_000, 7)] {
            let mut cut = Cut::new(bytes, runs);
            let (count, groups) = (cut.packets(8192), cut.groups(8192));
            let cut_off: Vec<u64> = std::iter::from_fn(|| cut.next(8192)).collect();
            assert!(cut.is_done());
            assert_eq!(cut_off.len() as u64, count);
            assert_eq!(cut_off.iter().sum::<u64>(), bytes);
            assert_eq!(groups.iter().map(|group| group.0).sum::<u64>(), count);
            assert_eq!(
                groups.iter().map(|group| group.0 * group.1).sum::<u64>(),
                bytes
            );
            assert_eq!(cut_off.last(), Some(&groups[3].1));
        }
    }
}
