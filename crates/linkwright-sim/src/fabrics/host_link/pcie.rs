//! PCI Express transactions: how many bytes a transfer puts on the wire, and how fast they go.
//!
//! A link is two one-way wires with a number of lanes. They carry *transaction layer packets* with a header,
//! and between them acknowledgements, flow control and skip symbols, which leave a fraction `efficiency` of
//! the rate:
//!
//! ```text
//!   usable rate  u = symbols per second x lanes x 128/130 / 8 x efficiency
//!
//!   posted write of S     |hdr| MPS |hdr| MPS |hdr| rest |                   one way
//!   read of S       up    |req|req|req|                                      one per MRRS
//!                   down            |hdr| MPS |hdr| MPS |hdr| rest |         completions
//!
//!   write:  (S + write_overhead ceil(S / MPS)) / u
//!   read:   request_overhead ceil(S / MRRS) / u up, (S + completion_overhead ceil(S / MPS)) / u down
//! ```
//!
//! MPS is the maximum payload of a packet, MRRS the maximum size of a read request. Completions of
//! unaligned reads break once more; this arithmetic assumes aligned ones. It has no state, so any
//! fabric with a PCIe link inside may use it.
//!
//! Source: Neugebauer, Antichi, Zazo, Audzevich, Lopez-Buedo and Moore, "Understanding PCIe
//! performance for end host networking" (SIGCOMM 2018).

use linkwright_core::machine::Section;
use linkwright_core::{Bytes, BytesPerSec, MachineError, TimePs};

linkwright_core::words! {
    /// A generation of the standard with 128/130 coding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Generation {
        /// 8 GT/s per lane.
        Gen3 = "gen3",
        /// 16 GT/s per lane.
        Gen4 = "gen4",
        /// 32 GT/s per lane.
        Gen5 = "gen5",
    }
}

impl Generation {
    /// Symbols per second and lane, one bit each, as the standard defines them.
    pub fn symbols_per_s(self) -> f64 {
        match self {
            Generation::Gen3 => 8e9,
            Generation::Gen4 => 16e9,
            Generation::Gen5 => 32e9,
        }
    }
}

/// One PCIe link; both directions are alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PcieLink {
    /// Generation of the standard.
    pub generation: Generation,
    /// Width.
    pub lanes: u64,
    /// Share of the symbols that acknowledgements, flow control and skips leave.
    pub efficiency: f64,
    /// MPS: most payload of one packet.
    pub max_payload: u64,
    /// MRRS: most bytes of one read request.
    pub max_read_request: u64,
    /// Bytes around the payload of a write packet.
    pub write_overhead: u64,
    /// Bytes of a read request, which has no payload.
    pub request_overhead: u64,
    /// Bytes around the payload of a completion.
    pub completion_overhead: u64,
}

impl PcieLink {
    /// Read the keys of a link from a table of a machine file.
    pub fn read(s: &mut Section<'_>) -> Result<PcieLink, MachineError> {
        let link = PcieLink {
            generation: Generation::ALL[s.choice("generation", &Generation::NAMES)?],
            lanes: s.count("lanes")?,
            efficiency: s.share("link_efficiency")?,
            max_payload: s.bytes("max_payload")?.0,
            max_read_request: s.bytes("max_read_request")?.0,
            write_overhead: s.bytes("write_overhead")?.0,
            request_overhead: s.bytes("request_overhead")?.0,
            completion_overhead: s.bytes("completion_overhead")?.0,
        };
        if !matches!(link.lanes, 1 | 2 | 4 | 8 | 16 | 32) {
            return Err(s.inconsistent("lanes", "a link has 1, 2, 4, 8, 16 or 32 lanes"));
        }
        for (key, bytes) in [
            ("max_payload", link.max_payload),
            ("max_read_request", link.max_read_request),
        ] {
            if !(128..=4096).contains(&bytes) || !bytes.is_power_of_two() {
                let problem = format!("{bytes} B; the standard has 128, 256, ... 4096 B");
                return Err(s.inconsistent(key, problem));
            }
        }
        Ok(link)
    }

    /// Rate of all symbols of one direction, coding taken off.
    pub fn raw_rate(&self) -> BytesPerSec {
        BytesPerSec(self.generation.symbols_per_s() * self.lanes as f64 * 128.0 / 130.0 / 8.0)
    }

    /// Rate left to packets, in one direction.
    pub fn usable_rate(&self) -> BytesPerSec {
        BytesPerSec(self.raw_rate().0 * self.efficiency)
    }

    /// Wire bytes of a posted write; at least one packet, which may be empty.
    pub fn write_wire(&self, bytes: u64) -> u64 {
        bytes + self.write_overhead * bytes.div_ceil(self.max_payload).max(1)
    }

    /// Wire bytes of the requests of a read.
    pub fn request_wire(&self, bytes: u64) -> u64 {
        self.request_overhead * bytes.div_ceil(self.max_read_request).max(1)
    }

    /// Wire bytes of the completions of a read.
    pub fn completion_wire(&self, bytes: u64) -> u64 {
        bytes + self.completion_overhead * bytes.div_ceil(self.max_payload).max(1)
    }

    /// Link time of a posted write, in its direction; no latency.
    pub fn write_time(&self, bytes: u64) -> TimePs {
        self.usable_rate().time(Bytes(self.write_wire(bytes)))
    }

    /// Link time of a read: the busier direction; no latency.
    pub fn read_time(&self, bytes: u64) -> TimePs {
        let wire = (self.request_wire(bytes)).max(self.completion_wire(bytes));
        self.usable_rate().time(Bytes(wire))
    }

    /// Payload per second of writes of `bytes` back to back.
    pub fn write_rate(&self, bytes: u64) -> BytesPerSec {
        BytesPerSec(self.usable_rate().0 * bytes as f64 / self.write_wire(bytes) as f64)
    }

    /// Payload per second of reads of `bytes` back to back, with enough requests under way.
    pub fn read_rate(&self, bytes: u64) -> BytesPerSec {
        let wire = (self.request_wire(bytes)).max(self.completion_wire(bytes));
        BytesPerSec(self.usable_rate().0 * bytes as f64 / wire as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(generation: Generation, lanes: u64) -> PcieLink {
        PcieLink {
            generation,
            lanes,
            // Acknowledgements come more often, in symbols, on a wide link.
            efficiency: if lanes == 8 { 0.9185 } else { 0.9021 },
            max_payload: 256,
            max_read_request: 512,
            write_overhead: 24,
            request_overhead: 24,
            completion_overhead: 20,
        }
    }

    #[test]
    fn packets_are_counted_as_the_standard_cuts_them() {
        let link = link(Generation::Gen3, 8);
        // 1000 B: four packets of at most 256 B, two requests of at most 512 B.
        assert_eq!(link.write_wire(1000), 1000 + 4 * 24);
        assert_eq!(link.completion_wire(1000), 1000 + 4 * 20);
        assert_eq!(link.request_wire(1000), 2 * 24);
        // A signal without data is a packet all the same.
        assert_eq!(link.write_wire(0), 24);
        // 8 GT/s x 8 lanes x 128/130 / 8 = 7.877 GB/s.
        assert_eq!((link.raw_rate().0 / 1e6).round(), 7877.0);
    }

    #[test]
    fn effective_rates_are_those_published() {
        // GB/s at MPS 256, long transfers (write, read) and Gen3 x8, Gen4 x8 at 64 B.
        let long = 1 << 20;
        for (generation, lanes, write, read) in [
            (Generation::Gen3, 8, 6.62, 6.71),
            (Generation::Gen3, 16, 12.99, 13.18),
            (Generation::Gen4, 8, 13.23, 13.42),
            (Generation::Gen4, 16, 25.99, 26.37),
            (Generation::Gen5, 16, 51.98, 52.73),
        ] {
            let link = link(generation, lanes);
            for (got, published) in [(link.write_rate(long), write), (link.read_rate(long), read)] {
                let error = (got.0 / 1e9 / published - 1.0f64).abs();
                assert!(
                    error < 0.002,
                    "{generation:?} x{lanes}: {got:?}, not {published}"
                );
            }
        }
        for (generation, write, read) in [
            (Generation::Gen3, 5.26, 5.51),
            (Generation::Gen4, 10.5, 11.0),
        ] {
            let link = link(generation, 8);
            assert!((link.write_rate(64).0 / 1e9 / write - 1.0f64).abs() < 0.005);
            assert!((link.read_rate(64).0 / 1e9 / read - 1.0f64).abs() < 0.005);
        }
    }
}
