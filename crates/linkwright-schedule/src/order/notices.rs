//! Notices: who can see by itself that a hazard is over, and who has to be told.
//!
//! A rank sees what arrives at it and what it sends. Where the initiator of the later operation cannot see the
//! end of the earlier one, a *witness* that can sends it a message without data, unless the last one that it
//! sent there says as much.

use super::need::Need;
use super::Orderer;
use crate::error::Result;
use crate::ir::{Completion, Edge, Op, OpKind};

impl Orderer {
    /// The edge by which `rank` itself can see that operation `id` meets `need`.
    pub(super) fn visible(&self, id: u32, need: Need, rank: u32) -> Option<Edge> {
        let op = &self.out.ops[id as usize];
        match op.kind {
            OpKind::Put | OpKind::Notice if op.to == rank => Some(Edge::on(id)),
            // A source that is among its own targets waits as the source. Another target cannot
            // know that the others have the data, nor that the source is free.
            OpKind::Multicast if op.from != rank && need == Need::DeliveredAt(rank) => {
                Some(Edge::on(id))
            }
            // Where the combined data are, all sources have been read.
            OpKind::Aggregate if self.is_seen_by_target(op, need, rank) => Some(Edge::on(id)),
            OpKind::Aggregate if op.from == rank => Some(Edge::acknowledged(id)),
            OpKind::Put | OpKind::Multicast | OpKind::Notice if op.from == rank => match need {
                Need::SourceFree => Some(Edge::on(id)),
                Need::DeliveredAt(_) => Some(Edge::acknowledged(id)),
            },
            OpKind::Get if op.to == rank => Some(Edge::on(id)),
            OpKind::Local | OpKind::Compute | OpKind::Fence | OpKind::Barrier
                if op.from == rank =>
            {
                Some(Edge::on(id))
            }
            _ => None,
        }
    }

    /// Whether the arrival of the aggregation `op` at `rank` tells it that `need` is met.
    fn is_seen_by_target(&self, op: &Op, need: Need, rank: u32) -> bool {
        let targets = self.out.targets(op);
        let told = targets.len() == 1
            || matches!(need, Need::SourceFree)
            || need == Need::DeliveredAt(rank);
        told && targets.contains(&rank)
    }

    /// Let a participant that can see it tell the initiator of `op` that `id` meets `need`.
    pub(super) fn notify(&mut self, op: &Op, id: u32, need: Need) -> Result<()> {
        let initiator = op.initiator();
        let witness = self.witness(id, need);
        if let Some(&notice) = self.last_notice.get(&(witness, initiator)) {
            let from = [(notice, Completion::Delivered)];
            if (self.search).follows(&from, &self.out, &self.chains, id, need) {
                self.add_edge(Edge::on(notice), initiator);
                return Ok(());
            }
        }
        let seen = self
            .visible(id, need, witness)
            .expect("a witness sees the operation");
        self.displace();
        let edges = std::mem::replace(&mut self.edges, vec![seen]);
        let notice = self.push(op.notice(witness, initiator))?;
        self.edges = edges;
        self.add_edge(Edge::on(notice), initiator);
        self.last_notice.insert((witness, initiator), notice);
        Ok(())
    }

    /// A rank that can see that operation `id` meets `need`: nearest to the chunk concerned.
    fn witness(&self, id: u32, need: Need) -> u32 {
        let op = &self.out.ops[id as usize];
        let near = match need {
            Need::SourceFree => op.from,
            Need::DeliveredAt(place) => place,
        };
        match near < self.out.ranks && self.visible(id, need, near).is_some() {
            true => near,
            false => op.initiator(),
        }
    }

    /// Make room for a notice before the operation that is being ordered.
    fn displace(&mut self) {
        let first = self.ordered();
        if first < self.out.ops.len() {
            self.displaced.extend(self.out.ops.drain(first + 1..).rev());
            self.out.ops.truncate(first);
        }
    }
}
