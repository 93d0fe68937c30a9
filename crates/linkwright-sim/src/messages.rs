//! From operations of a schedule to messages of a fabric.
//!
//! A schedule counts in chunks and names participants; a fabric counts in bytes and names
//! endpoints and networks. [`Messages`] translates, with everything that is the same for all
//! operations worked out once: it is asked several times per message, and the divisions of an
//! even cut would cost more than the rest of the simulation.

use crate::fabric::{Msg, MsgKind, Wanted};
use linkwright_core::machine::Hints;
use linkwright_core::EndpointId;
use linkwright_schedule::ir::{Buffer, Hint, Op, OpKind, Schedule};

/// Handles of the notices that a path sends after a transfer carry this bit.
pub(crate) const SIGNAL: u32 = 1 << 30;

/// Which network of the machine an operation takes.
#[derive(Clone, Debug)]
pub struct Networks {
    /// By axis hint: +x, -x, +y, -y.
    axes: [u8; 4],
    /// By lane, where an operation hints at no axis.
    lanes: [u8; 256],
}

impl Default for Networks {
    /// Everything on network 0.
    fn default() -> Self {
        Networks {
            axes: [0; 4],
            lanes: [0; 256],
        }
    }
}

impl Networks {
    /// As the machine's `[hints]` say.
    pub fn new(hints: &Hints) -> Self {
        let mut networks = Networks::default();
        for (i, network) in networks.axes.iter_mut().enumerate() {
            *network = hints.axis(i as u8 / 2, i % 2 == 0);
        }
        for (lane, network) in networks.lanes.iter_mut().enumerate() {
            *network = hints.lane(lane as u8);
        }
        networks
    }

    /// Everything on `network`.
    pub fn only(network: u8) -> Self {
        Networks {
            axes: [network; 4],
            lanes: [network; 256],
        }
    }

    /// Every network that some operation may take, in order.
    pub(crate) fn all(&self) -> Vec<u8> {
        let mut all = [&self.axes[..], &self.lanes[..]].concat();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The network of `op`.
    #[inline]
    pub fn of(&self, op: &Op) -> u8 {
        match op.hint {
            Hint::None => self.lanes[op.lane as usize],
            Hint::PlusX => self.axes[0],
            Hint::MinusX => self.axes[1],
            Hint::PlusY => self.axes[2],
            Hint::MinusY => self.axes[3],
        }
    }
}

/// An even cut without divisions, in bytes: part `i` starts at `i * length + min(i, longer) * element`.
#[derive(Clone, Copy, Debug)]
struct Cut {
    length: u64,
    longer: u64,
    element: u64,
    /// Buffers cut twice or unevenly are rare enough to be asked themselves.
    nested: bool,
}

impl Cut {
    fn of(buffer: &Buffer, schedule: &Schedule) -> Self {
        let total = buffer.elements(schedule.elements);
        let element = u64::from(schedule.element_bytes);
        Cut {
            length: total / u64::from(buffer.blocks) * element,
            longer: total % u64::from(buffer.blocks),
            element,
            nested: buffer.slices > 1 || buffer.parts.is_some(),
        }
    }

    /// Bytes of `count` parts from `first` on.
    #[inline]
    fn bytes(&self, first: u32, count: u32) -> u64 {
        let (first, count) = (u64::from(first), u64::from(count));
        let even = count * self.length;
        if self.longer == 0 {
            return even;
        }
        even + ((first + count).min(self.longer) - first.min(self.longer)) * self.element
    }
}

/// Translates the operations of one schedule.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a> {
    pub schedule: &'a Schedule,
    placement: &'a [EndpointId],
    networks: &'a Networks,
    cuts: Vec<Cut>,
}

impl<'a> Messages<'a> {
    pub fn new(
        schedule: &'a Schedule,
        placement: &'a [EndpointId],
        networks: &'a Networks,
    ) -> Self {
        Messages {
            schedule,
            placement,
            networks,
            cuts: (schedule.buffers.iter())
                .map(|buffer| Cut::of(buffer, schedule))
                .collect(),
        }
    }

    /// Bytes that `op` moves.
    #[inline]
    pub fn bytes(&self, op: &Op) -> u64 {
        if !op.moves_data() {
            return 0;
        }
        let cut = &self.cuts[op.src_buffer.0 as usize];
        if cut.nested || op.scattered {
            return self.schedule.op_bytes(op);
        }
        cut.bytes(op.src, op.count)
    }

    /// Where participant `participant` is.
    #[inline]
    pub fn endpoint(&self, participant: u32) -> EndpointId {
        self.placement[participant as usize]
    }

    /// The network that `op` takes.
    #[inline]
    pub fn network(&self, op: &Op) -> u8 {
        self.networks.of(op)
    }

    /// The message of operation `id`.
    pub fn message(&self, id: u32) -> Msg {
        let op = &self.schedule.ops()[id as usize];
        Msg {
            bytes: self.bytes(op),
            ..self.without_data(id, op)
        }
    }

    /// The same for `op`, operation `id`, without its bytes.
    #[inline(always)] // of its callers each needs other parts
    pub fn without_data(&self, id: u32, op: &Op) -> Msg {
        let (kind, to, sources, set) = match op.kind {
            OpKind::Put => (MsgKind::Put, op.to, 0, 0),
            OpKind::Get => (MsgKind::Get, op.to, 0, 0),
            OpKind::Multicast => (MsgKind::Multicast, op.from, 0, op.to),
            OpKind::Aggregate => {
                let (sources, targets) = self.schedule.aggregations[op.to as usize];
                (MsgKind::Aggregate, op.from, sources, targets)
            }
            _ => (MsgKind::Notice, op.to, 0, 0),
        };
        Msg {
            op: id,
            from: self.endpoint(op.from),
            to: self.endpoint(to),
            bytes: 0,
            runs: self.schedule.op_runs(op),
            kind,
            network: self.networks.of(op),
            set,
            sources,
            wanted: Wanted::ALL,
        }
    }

    /// Whether a path with signals announces `op` to its targets by a notice.
    #[inline]
    pub fn is_announced(&self, op: &Op) -> bool {
        match op.kind {
            OpKind::Put => op.to < self.schedule.ranks,
            OpKind::Multicast => true,
            _ => false,
        }
    }

    /// The notice that tells the target of transfer `id` that its data are there.
    pub fn signal(&self, id: u32) -> Msg {
        let message = self.message(id);
        Msg {
            op: id | SIGNAL,
            bytes: 0,
            runs: 1,
            kind: match message.kind {
                MsgKind::Multicast => MsgKind::Multicast,
                _ => MsgKind::Notice,
            },
            wanted: Wanted::DELIVERY,
            ..message
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkwright_schedule::builder::{Builder, Shape};
    use linkwright_schedule::{Buffer, Collective};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sizes_are_those_of_the_schedule(
            elements in 0u64..1000, blocks in 1u32..9, slices in 1u32..4, from in 0u32..6, count in 0u32..6,
        ) {
            let mut b = Builder::new(Collective::Pattern, &Shape::new(2, elements));
            let cut = Buffer { slices, ..Buffer::vector("output", blocks) };
            let (a, c) = (b.buffer(cut.clone()), b.buffer(Buffer { name: "scratch".into(), ..cut }));
            let chunks = blocks * slices;
            let (from, end) = (from.min(chunks), (from + count).min(chunks));
            b.step();
            b.put(0, a.range(from..end), 1, c.range(from..end));
            let schedule = b.finish().unwrap();
            let (placement, networks) = ([EndpointId(0), EndpointId(1)], Networks::default());
            let messages = Messages::new(&schedule, &placement, &networks);
            for op in schedule.ops() {
                prop_assert_eq!(messages.bytes(op), schedule.op_bytes(op));
            }
        }
    }
}
