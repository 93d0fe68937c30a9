//! What one operation does, with the channels and semaphores that it names.

use super::{Parser, MAX_NAMES};
use crate::error::Result;
use crate::mscclpp::json::{self, ChannelType, Name};
use crate::mscclpp::plan::{Action, Data, Part};

impl Parser<'_> {
    pub(super) fn action(&mut self, op: &json::Op) -> Result<Action> {
        if let Some(how) = op.reduce_op {
            if *self.reduce_op.get_or_insert(how) != how {
                return self.fail("another reduce_op than before; one run has one");
            }
        }
        Ok(match op.name {
            Name::Nop => Action::Nop,
            Name::Barrier => match (op.barrier_id, op.num_threadblocks) {
                (Some(id), Some(count)) => Action::Barrier(id, count),
                _ => return self.fail("a barrier needs barrier_id and num_threadblocks"),
            },
            Name::Signal => Action::Post(self.ends_of(op)?, false),
            Name::RelaxedSignal => Action::Post(self.ends_of(op)?, true),
            Name::Wait => Action::Take(self.ends_of(op)?, false),
            Name::RelaxedWait => Action::Take(self.ends_of(op)?, true),
            Name::Flush => Action::Flush(self.ends_of(op)?),
            Name::Acquire => Action::Take(self.semaphores(op)?, false),
            Name::Release => Action::Post(self.semaphores(op)?, false),
            Name::Pipeline => {
                return self.fail(
                    "a pipeline repeats its operations for each part of so many bytes, and a schedule knows no bytes; \
                     write the plan without",
                )
            }
            Name::SwitchReduce | Name::SwitchReduceStore | Name::SwitchStore | Name::SwitchStorePackets => {
                return self.fail(
                    "the switch combines or copies here, which no transfer between two GPUs expresses; \
                     use memory or port channels",
                )
            }
            _ => Action::Data(self.data(op)?),
        })
    }

    fn ends_of(&mut self, op: &json::Op) -> Result<Part> {
        if op.channel_ids.is_empty() {
            return self.fail("names no channel; list some in channel_ids");
        }
        self.room_for(op.channel_ids.len())?;
        let kind = op.channel_type.unwrap_or(ChannelType::None);
        let first = self.plan.names.len() as u32;
        for &channel in &op.channel_ids {
            let ends = self.gpu.block_ends.get(&kind);
            let Some(&end) = ends.and_then(|ends| ends.get(channel as usize)) else {
                return self.fail(format!(
                    "channel {channel} is not among those of the thread block; add it there"
                ));
            };
            self.plan.names.push(end);
        }
        Ok((first, self.plan.names.len() as u32))
    }

    fn room_for(&self, names: usize) -> Result<()> {
        match self.plan.names.len() + names > MAX_NAMES {
            true => self.fail(format!(
                "operations name more than {MAX_NAMES} channels and semaphores; use fewer"
            )),
            false => Ok(()),
        }
    }

    fn semaphores(&mut self, op: &json::Op) -> Result<Part> {
        self.room_for(op.semaphore_ids.len())?;
        let first = self.plan.names.len() as u32;
        let known = self.plan.semaphores.len() as u32 - self.gpu.first_semaphore;
        for &semaphore in &op.semaphore_ids {
            if semaphore >= known {
                return self.fail(format!(
                    "semaphore {semaphore} does not exist; the GPU has {known}"
                ));
            }
            let first = self.plan.ends.len() as u32 + self.gpu.first_semaphore;
            self.plan.names.push(first + semaphore);
        }
        match op.semaphore_ids.is_empty() {
            true => self.fail("names no semaphore; list some in semaphore_ids"),
            false => Ok((first, self.plan.names.len() as u32)),
        }
    }

    fn data(&mut self, op: &json::Op) -> Result<Data> {
        let port = op.channel_type == Some(ChannelType::Port);
        let puts = matches!(
            op.name,
            Name::Put | Name::PutSignal | Name::PutSignalFlush | Name::ReadPutPackets
        );
        if port && !puts {
            return self.fail("a port channel can only put; use a memory channel");
        }
        if matches!(op.name, Name::PutSignal | Name::PutSignalFlush) && !port {
            return self
                .fail("only a port channel can put and signal at once; use put, nop and signal");
        }
        let first = self.plan.moves.len() as u32;
        self.moves(op)?;
        let moves = (first, self.plan.moves.len() as u32);
        let ports = if port { self.ends_of(op)? } else { (0, 0) };
        let count = moves.1 - moves.0;
        if port && ports.1 - ports.0 != count {
            return self.fail(format!(
                "{count} puts through {} channels; make them equal",
                ports.1 - ports.0
            ));
        }
        for k in 0..if port { count } else { 0 } {
            let end = self.plan.names[(ports.0 + k) as usize];
            let (peer, to) = (
                self.plan.ends[end as usize].peer,
                self.plan.moves[(moves.0 + k) as usize].to,
            );
            if peer != to {
                return self.fail(format!(
                    "puts into a buffer of gpu {to} through a channel to gpu {peer}"
                ));
            }
        }
        Ok(Data {
            moves,
            ports,
            signals: matches!(op.name, Name::PutSignal | Name::PutSignalFlush),
            flushes: op.name == Name::PutSignalFlush,
        })
    }
}
