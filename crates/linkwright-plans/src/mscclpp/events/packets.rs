//! Packets: their reader waits for their writer.

use super::Maker;
use crate::error::Result;
use crate::mscclpp::json::Space;
use crate::mscclpp::plan::{Action, Move, Steps};
use crate::skeleton::NONE;

impl Maker<'_> {
    /// Each reader of packets waits for their writer.
    pub(super) fn packets(&mut self) -> Result<()> {
        let cells = self.plan.cells();
        let mut writer = vec![NONE; cells.count()];
        let mut plain: Vec<Option<u32>> = vec![None; self.plan.goal.ranks as usize];
        let mut packets = plain.clone();
        for (op, node, made) in self.all_moves() {
            for (gpu, place, is_packets, writes) in [
                (made.from, made.src, made.reads_packets, false),
                (made.to, made.dst, made.writes_packets, true),
            ] {
                if place.space != Space::Scratch {
                    continue;
                }
                let kinds = if is_packets { &mut packets } else { &mut plain };
                kinds[gpu as usize].get_or_insert(op);
                if !is_packets || !writes {
                    continue;
                }
                let first = cells.of(gpu, place) as usize;
                for writer in &mut writer[first..first + made.count as usize] {
                    if *writer != NONE {
                        let other = self.plan.place(self.out.order.owner[*writer as usize]);
                        return self.plan.error(
                            op,
                            format!(
                                "writes packets where {other} does, and a reader cannot tell them apart; use other chunks of \
                                 scratch"
                            ),
                        );
                    }
                    *writer = node;
                }
            }
        }
        for (gpu, both) in plain.iter().zip(&packets).enumerate() {
            if let (Some(op), Some(other)) = both {
                let other = self.plan.place(*other);
                let problem = format!(
                    "uses scratch of gpu {gpu} without packets, {other} with; keep to one of them"
                );
                return self.plan.error(*op, problem);
            }
        }
        for (op, _, made) in self.all_moves() {
            let mut last = NONE;
            let first = cells.of(made.from, made.src) as usize;
            let sources = &writer[first..first + made.count as usize];
            for &from in sources.iter().filter(|_| made.reads_packets) {
                if from == NONE {
                    return self.plan.error(
                        op,
                        "waits for packets that are never written; put them there",
                    );
                }
                if from != last {
                    self.out.order.seen.push((from, op));
                    self.out
                        .signals
                        .push((self.out.order.owner[from as usize], op));
                }
                last = from;
            }
        }
        Ok(())
    }

    /// (operation, when it is done, move) of all moves.
    fn all_moves(&self) -> Vec<(u32, u32, Move)> {
        let mut list = Vec::with_capacity(self.plan.moves.len());
        for (op, known) in (0..).zip(&self.plan.ops) {
            if let Action::Data(data) = known.action {
                let moves = (data.moves.0..data.moves.1).zip(self.plan.data(op));
                list.extend(moves.map(|(index, &made)| (op, self.out.done[index as usize], made)));
            }
        }
        list
    }
}
