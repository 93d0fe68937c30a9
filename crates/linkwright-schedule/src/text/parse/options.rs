//! Options of an operation: its lane, its hint, and what it waits for.

use super::Parser;
use crate::ir::{Edge, Hint, Op, OpKind};
use crate::text::cursor::{Cursor, Result as LineResult};
use crate::text::remote::other_side;

impl Parser {
    pub(super) fn options(&mut self, line: &mut Cursor, op: &mut Op) -> LineResult<()> {
        let mut far = Vec::new();
        let mut seen = 0u8;
        let two_sided = matches!(
            op.kind,
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate
        );
        let gets = matches!(op.kind, OpKind::Get | OpKind::Aggregate);
        loop {
            line.space();
            if line.is_done() {
                break;
            }
            let start = *line;
            // One bit per option, to refuse repetitions.
            let bit = if line.take(b"lane=") {
                let lane = line.number("a lane")?;
                op.lane = u8::try_from(lane)
                    .map_err(|_| format!("lane {lane} does not exist; lanes are 0..255"))?;
                1
            } else if line.take(b"hint=") {
                op.hint = hint(line)?;
                2
            } else if line.take(b"fenced") {
                op.fenced = true;
                4
            } else if two_sided && line.take(b"src_after=") {
                self.waits(line, op, gets.then_some(&mut far))?;
                8
            } else if two_sided && line.take(b"dst_after=") {
                self.waits(line, op, (!gets).then_some(&mut far))?;
                16
            } else if !two_sided && line.take(b"after=") {
                self.waits(line, op, None)?;
                32
            } else {
                let waits = if two_sided {
                    "src_after=, dst_after="
                } else {
                    "after="
                };
                return Err(format!(
                    "{} is no property of this operation; known are lane=, hint=, fenced, {waits}",
                    line.found()
                ));
            };
            if seen & bit != 0 {
                return Err(format!(
                    "{} stands behind another; leave one",
                    start.found()
                ));
            }
            seen |= bit;
        }
        if !far.is_empty() {
            self.remote.push((self.schedule.ops.len() as u32, far));
        }
        Ok(())
    }

    /// `-` or `t3,t5!`; `far` takes the waits of the side that does not initiate.
    fn waits(
        &mut self,
        line: &mut Cursor,
        op: &Op,
        mut far: Option<&mut Vec<Edge>>,
    ) -> LineResult<()> {
        if line.take(b"-") {
            return Ok(());
        }
        loop {
            let edge = self.edge(line)?;
            match &mut far {
                Some(far) => {
                    self.can_wait_far(op, edge)?;
                    far.push(edge);
                }
                None => self.schedule.edges.push(edge),
            }
            if !line.take(b",") {
                return Ok(());
            }
        }
    }

    /// `t3` or `t5!`, an operation that is earlier.
    fn edge(&self, line: &mut Cursor) -> LineResult<Edge> {
        let id = self.schedule.ops.len() as u32;
        if !line.take(b"t") {
            return Err(format!(
                "{} where `-` or an id such as t0 should stand",
                line.found()
            ));
        }
        let target = line.number32("an id such as t0")?;
        if target >= id {
            return Err(format!(
                "t{id} waits for t{target}, which is not earlier; sort the operations so that \
                 every edge leads to a smaller id"
            ));
        }
        let acknowledged = line.take(b"!");
        if self.infer {
            let cure = "write `edges given` and all edges, or none";
            return Err(format!("an edge in a file with `edges infer`; {cure}"));
        }
        Ok(match acknowledged {
            true => Edge::acknowledged(target),
            false => Edge::on(target),
        })
    }

    fn can_wait_far(&self, op: &Op, edge: Edge) -> LineResult<()> {
        if op.kind == OpKind::Multicast {
            return Err(
                "the targets of a multicast cannot wait; let them send notices and let \
                        the source wait for those"
                    .to_string(),
            );
        }
        if op.kind == OpKind::Aggregate {
            return Err(
                "the sources of an aggregation cannot wait; let them send notices and let \
                        the first target wait for those"
                    .to_string(),
            );
        }
        let other = other_side(op);
        if other >= self.schedule.ranks {
            return Err(format!("memory {other} cannot wait; let a rank wait"));
        }
        match self.schedule.completion(edge, other) {
            Some(_) => Ok(()),
            None => Err(format!(
                "rank {other} waits for t{}, which it cannot see; let a rank that can see it send \
                 a notice",
                edge.op()
            )),
        }
    }
}

fn hint(line: &mut Cursor) -> LineResult<Hint> {
    let known = |hint: &Hint| line.take(hint.name().as_bytes());
    // `-` is the beginning of `-x`, so it comes last.
    let found = Hint::ALL.into_iter().rev().find(known);
    found.ok_or_else(|| format!("{} is no hint; known are +x, -x, +y, -y", line.found()))
}
