//! Memory for a probe: mapped, with pages of a wanted size, within a share of what is free.
//!
//! Memory is touched first by the thread that maps it, so it lies near that thread's core. Pages of 2 MiB
//! are requested with `madvise` and counted in `/proc/self/smaps` afterwards, because the kernel may
//! silently decline.

use super::probe::{waived, Setting};
use crate::error::Result;
use crate::mapping::Mapping;
use linkwright_core::free_memory::available_memory;
use linkwright_core::probes::Description;
use std::fs;

const HUGE: usize = 2 << 20;
/// What a probe may take of the free memory.
const SHARE: u64 = 4;

/// Size of the pages wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pages {
    Base,
    Huge,
}

/// Mapped memory, zeroed and resident.
#[derive(Debug)]
pub(super) struct Mapped {
    _mapping: Mapping,
    base: *mut u8,
    bytes: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for Mapped {}
// SAFETY: it only gives out an address; each reader and writer says why its access is sound.
unsafe impl Sync for Mapped {}

/// Refuses a probe that would need more than a share of the free memory, or than the caller allows.
pub(super) fn check_room(about: &Description, setting: &Setting, bytes: u64) -> Result<()> {
    let free = available_memory().unwrap_or(u64::MAX);
    let (most, whose) = match setting.most_bytes {
        Some(most) if most < free / SHARE => (most, "what this run may take".to_string()),
        _ => (
            free / SHARE,
            format!("a quarter of the {} MiB free", free >> 20),
        ),
    };
    if bytes <= most {
        return Ok(());
    }
    let reason = format!(
        "needs {} MiB, and {whose} is {} MiB; use a smaller working set",
        bytes >> 20,
        most >> 20
    );
    Err(waived(about, reason))
}

impl Mapped {
    /// Maps and touches `bytes`.
    pub(super) fn new(about: &Description, bytes: usize, pages: Pages) -> Result<Mapped> {
        let wanted = bytes
            .max(1)
            .next_multiple_of(if pages == Pages::Huge { HUGE } else { 4096 });
        let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE;
        let mapping = Mapping::new(wanted + HUGE, flags)
            .map_err(|error| waived(about, format!("cannot map {bytes} bytes: {error}")))?;
        let memory = Mapped {
            // SAFETY: the mapping is one huge page longer than what is wanted of it.
            base: unsafe { mapping.base().add(mapping.base().align_offset(HUGE)) },
            _mapping: mapping,
            bytes,
        };
        memory.place(about, wanted, pages)?;
        Ok(memory)
    }

    /// Advises and touches; checks that huge pages were given.
    fn place(&self, about: &Description, wanted: usize, pages: Pages) -> Result<()> {
        let advice = match pages {
            Pages::Base => libc::MADV_NOHUGEPAGE,
            Pages::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: within the mapping.
        let status = unsafe { libc::madvise(self.base.cast(), wanted, advice) };
        let refused = std::io::Error::last_os_error();
        for page in (0..wanted).step_by(4096) {
            // SAFETY: within the mapping. A write, because a page that is only read may stay shared.
            unsafe { self.base.add(page).write_volatile(0) };
        }
        if pages == Pages::Base {
            return Ok(()); // without huge pages in the kernel there is nothing to refuse
        }
        let cure = "allow them in /sys/kernel/mm/transparent_hugepage/enabled";
        if status != 0 {
            return Err(waived(
                about,
                format!("2 MiB pages are refused: {refused}; {cure}"),
            ));
        }
        match huge_bytes_at(self.base as usize) {
            Some(huge) if huge >= wanted => Ok(()),
            found => {
                let got = found.unwrap_or(0) >> 20;
                let reason = format!("{got} of {} MiB came in 2 MiB pages; {cure}", wanted >> 20);
                Err(waived(about, reason))
            }
        }
    }

    /// First byte, aligned to 2 MiB.
    pub(super) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Bytes requested.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes in huge pages of the mapping that holds this address.
fn huge_bytes_at(address: usize) -> Option<usize> {
    huge_bytes(&fs::read_to_string("/proc/self/smaps").ok()?, address)
}

fn huge_bytes(smaps: &str, address: usize) -> Option<usize> {
    let mut lines = smaps.lines();
    lines.find(|line| {
        let range = line
            .split_once(' ')
            .and_then(|(range, _)| range.split_once('-'));
        let ends = range.and_then(|(from, to)| {
            let hex = |text| usize::from_str_radix(text, 16).ok();
            Some(hex(from)?..hex(to)?)
        });
        ends.is_some_and(|ends| ends.contains(&address))
    })?;
    let line = lines.find_map(|line| line.strip_prefix("AnonHugePages:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_core::probes::MEMORY_LATENCY;

    #[test]
    fn huge_pages_are_counted_in_the_mapping_of_an_address() {
        let smaps = "7f0000000000-7f0000400000 rw-p 00000000 00:00 0\nSize: 4096 kB\n\
                     AnonHugePages:      2048 kB\n7f0000400000-7f0000600000 rw-p 0 00:00 0\n\
                     AnonHugePages:         0 kB\n";
        assert_eq!(huge_bytes(smaps, 0x7f00_0000_1000), Some(2 << 20));
        assert_eq!(huge_bytes(smaps, 0x7f00_0040_0000), Some(0));
        assert_eq!(huge_bytes(smaps, 0x1000), None);
    }

    #[test]
    fn memory_is_mapped_or_waived_with_a_reason() {
        let small = Mapped::new(&MEMORY_LATENCY, 10_000, Pages::Base).unwrap();
        assert_eq!((small.base() as usize % HUGE, small.bytes()), (0, 10_000));
        if let Err(error) = Mapped::new(&MEMORY_LATENCY, 1 << 20, Pages::Huge) {
            assert!(
                error.to_string().contains("transparent_hugepage"),
                "{error}"
            );
        }
    }
}
