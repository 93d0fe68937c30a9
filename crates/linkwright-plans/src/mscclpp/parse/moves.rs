//! What a data operation moves, combines and copies.

use super::spans::Span;
use super::Parser;
use crate::error::Result;
use crate::mscclpp::json::{self, Name, Space};
use crate::mscclpp::plan::{Move, Mover};

/// Most units that all operations move.
const MAX_MOVED: u64 = 1 << 23;

impl Parser<'_> {
    /// Write down what a data operation moves.
    pub(super) fn moves(&mut self, op: &json::Op) -> Result<()> {
        let (sources, targets) = (op.src_buff.len(), op.dst_buff.len());
        let (least, most) = match op.name {
            Name::Put | Name::PutSignal | Name::PutSignalFlush | Name::Get | Name::PutPackets => {
                if sources != targets || sources == 0 {
                    return self.fail(format!(
                        "{sources} sources and {targets} destinations; make them equal"
                    ));
                }
                ((1, 1), (usize::MAX, usize::MAX))
            }
            Name::Copy | Name::CopyPackets | Name::UnpackPackets => ((1, 1), (1, 1)),
            Name::ReadPutPackets => ((1, 1), (1, usize::MAX)),
            Name::Reduce | Name::ReadReduce | Name::ReducePackets => ((2, 1), (usize::MAX, 1)),
            Name::ReduceCopyPackets => ((2, 2), (usize::MAX, 2)),
            Name::ReduceCopySendPackets => ((2, 3), (usize::MAX, usize::MAX)),
            _ => ((2, 2), (usize::MAX, usize::MAX)),
        };
        if sources < least.0 || sources > most.0 || targets < least.1 || targets > most.1 {
            return self.fail(format!(
                "{sources} sources and {targets} destinations do not fit this operation"
            ));
        }
        let packets = matches!(
            op.name,
            Name::PutPackets | Name::ReadPutPackets | Name::CopyPackets
        );
        let reads_packets = matches!(op.name, Name::ReadPutPackets | Name::UnpackPackets);
        match op.name {
            Name::Copy | Name::CopyPackets | Name::UnpackPackets => {
                let (src, dst) = (
                    self.local(op, op.src_buff[0])?,
                    self.local(op, op.dst_buff[0])?,
                );
                self.transfer(Mover::Local, src, dst, reads_packets, packets)
            }
            Name::Get => {
                for (&src, &dst) in op.src_buff.iter().zip(&op.dst_buff) {
                    let (src, dst) = (self.remote(op, src)?, self.local(op, dst)?);
                    self.transfer(Mover::Get, src, dst, false, false)?;
                }
                Ok(())
            }
            Name::Put
            | Name::PutSignal
            | Name::PutSignalFlush
            | Name::PutPackets
            | Name::ReadPutPackets => {
                for (index, &dst) in op.dst_buff.iter().enumerate() {
                    let src = op.src_buff[index.min(sources - 1)];
                    let (src, dst) = (self.local(op, src)?, self.remote(op, dst)?);
                    self.transfer(Mover::Put, src, dst, reads_packets, packets)?;
                }
                Ok(())
            }
            _ => self.reduction(op),
        }
    }

    /// Combine the sources at the first destination, and send the result to the others.
    fn reduction(&mut self, op: &json::Op) -> Result<()> {
        let reads = matches!(op.name, Name::ReadReduce | Name::ReadReduceSend);
        let packets = matches!(
            op.name,
            Name::ReducePackets
                | Name::ReduceSendPackets
                | Name::ReduceCopyPackets
                | Name::ReduceCopySendPackets
        );
        let copies = matches!(
            op.name,
            Name::ReduceCopyPackets | Name::ReduceCopySendPackets
        );
        let dst = self.local(op, op.dst_buff[0])?;
        let mut parts = vec![(Mover::Local, self.local(op, op.src_buff[0])?, false)];
        for &src in &op.src_buff[1..] {
            parts.push(match reads {
                true => (Mover::Get, self.remote(op, src)?, false),
                false => (Mover::Local, self.local(op, src)?, packets),
            });
        }
        // A source that is the destination is there already; else the first one is copied.
        let there = |part: &(Mover, Span, bool)| part.0 == Mover::Local && !part.2 && part.1 == dst;
        match parts.iter().position(there) {
            Some(index) => drop(parts.remove(index)),
            None => {
                let (kind, src, waits) = parts.remove(0);
                self.transfer(kind, src, dst, waits, false)?;
            }
        }
        for (kind, src, waits) in parts {
            if src == dst {
                return self.fail("combines its destination with itself; name another source");
            }
            self.transfer(kind, src, dst, waits, false)?;
            if let Some(made) = self.plan.moves.last_mut() {
                made.reduces = true;
            }
        }
        for (index, &target) in (1..).zip(&op.dst_buff[1..]) {
            match copies && index == 1 {
                true => {
                    let copy = self.local(op, target)?;
                    self.transfer(Mover::Local, dst, copy, false, true)?;
                }
                false => {
                    let target = self.remote(op, target)?;
                    self.transfer(Mover::Put, dst, target, false, packets)?;
                }
            }
        }
        Ok(())
    }

    fn transfer(
        &mut self,
        kind: Mover,
        src: Span,
        dst: Span,
        reads_packets: bool,
        writes_packets: bool,
    ) -> Result<()> {
        if src.count != dst.count {
            return self.fail(format!(
                "{} parts of chunks go into {}; make the sizes equal",
                src.count, dst.count
            ));
        }
        for (packets, span) in [(reads_packets, src), (writes_packets, dst)] {
            if packets && span.place.space != Space::Scratch {
                return self.fail(
                    "packets lie outside scratch, where there is no room for their flags; use `s`",
                );
            }
        }
        let meets = src.gpu == dst.gpu && src.place.space == dst.place.space;
        let apart = src.place.at.abs_diff(dst.place.at);
        if meets && apart < src.count {
            if apart == 0 && src == dst && !reads_packets && !writes_packets {
                // Nothing moves; a copy onto itself is what aliases of input and output come to.
                return Ok(());
            }
            return self.fail("source and destination overlap; move them apart");
        }
        self.moved += u64::from(src.count);
        if self.moved > MAX_MOVED {
            return self.fail(format!(
                "more than {MAX_MOVED} parts of chunks are moved; use fewer chunks"
            ));
        }
        self.plan.moves.push(Move {
            from: src.gpu,
            src: src.place,
            to: dst.gpu,
            dst: dst.place,
            count: src.count,
            kind,
            reduces: false,
            reads_packets,
            writes_packets,
        });
        Ok(())
    }
}
