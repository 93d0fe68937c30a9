//! Packets: their reader waits for their writer.

use super::Maker;
use crate::error::Result;
use crate::mscclpp::json::Space;
use crate::mscclpp::plan::Steps;
use crate::skeleton::NONE;

impl Maker<'_> {
    /// Each reader of packets waits for their writer.
    pub(super) fn packets(&mut self) -> Result<()> {
        let (plan, order) = (self.plan, &mut self.out.order);
        let cells = plan.cells();
        let mut writer = vec![NONE; cells.count()];
        // Of each GPU, an operation that uses its scratch without packets, and one that does with packets.
        let mut users = vec![[None; 2]; plan.goal.ranks as usize];
        for (made, &done) in plan.moves.iter().zip(&self.out.done) {
            let op = order.owner[done as usize];
            let ends = [
                (made.from, made.src, made.reads_packets),
                (made.to, made.dst, made.writes_packets),
            ];
            for (gpu, _, packets) in ends.into_iter().filter(|end| end.1.space == Space::Scratch) {
                users[gpu as usize][usize::from(packets)].get_or_insert(op);
            }
            let first = cells.of(made.to, made.dst) as usize;
            let written = writer[first..first + made.count as usize].iter_mut();
            for writer in written.filter(|_| made.writes_packets) {
                if *writer != NONE {
                    let other = plan.place(order.owner[*writer as usize]);
                    let problem = format!(
                        "writes packets where {other} does, and a reader cannot tell them apart; use other chunks of \
                         scratch"
                    );
                    return plan.error(op, problem);
                }
                *writer = done;
            }
        }
        for (gpu, users) in users.iter().enumerate() {
            if let [Some(op), Some(other)] = *users {
                let other = plan.place(other);
                let problem = format!(
                    "uses scratch of gpu {gpu} without packets, {other} with; keep to one of them"
                );
                return plan.error(op, problem);
            }
        }
        let readers = plan.moves.iter().zip(&self.out.done);
        for (made, &done) in readers.filter(|(made, _)| made.reads_packets) {
            let (op, mut last) = (order.owner[done as usize], NONE);
            let first = cells.of(made.from, made.src) as usize;
            for &from in &writer[first..first + made.count as usize] {
                if from == NONE {
                    let problem = "waits for packets that are never written; put them there";
                    return plan.error(op, problem);
                }
                if from != last {
                    order.seen.push((from, op));
                    let signal = order.owner[from as usize];
                    self.out.signals.push((signal, op));
                }
                last = from;
            }
        }
        Ok(())
    }
}
