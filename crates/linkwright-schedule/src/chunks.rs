//! A number for every chunk of every participant, for transforms that look at all of them.

use crate::ir::{BufferId, Op, Schedule};

/// Where the chunks of each buffer begin.
pub(crate) struct Chunks {
    /// First number of each buffer, and the chunks of one participant.
    places: Vec<(usize, usize)>,
    count: usize,
}

impl Chunks {
    pub fn of(schedule: &Schedule) -> Self {
        let participants = (schedule.ranks + schedule.memories) as usize;
        let mut count = 0;
        let mut places = Vec::new();
        for buffer in &schedule.buffers {
            places.push((count, buffer.chunks() as usize));
            count += buffer.chunks() as usize * participants;
        }
        Chunks { places, count }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    fn number(&self, participant: u32, buffer: BufferId, chunk: u32) -> usize {
        let (first, each) = self.places[usize::from(buffer.0)];
        first + participant as usize * each + chunk as usize
    }

    /// The chunks that an operation reads, and those that it writes.
    pub fn touched(&self, schedule: &Schedule, op: &Op) -> (Vec<usize>, Vec<usize>) {
        let (mut read, mut written) = (Vec::new(), Vec::new());
        for (src, dst, count) in schedule.chunk_ranges(op) {
            for k in 0..count {
                let sources = schedule.sources(op).iter();
                read.extend(sources.map(|&one| self.number(one, op.src_buffer, src + k)));
                let targets = schedule.targets(op).iter();
                written.extend(targets.map(|&one| self.number(one, op.dst_buffer, dst + k)));
            }
        }
        (read, written)
    }
}
