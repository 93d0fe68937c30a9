//! From a schedule to its canonical text.

use crate::ir::{Buffer, BufferId, Combine, Edge, Hint, Op, OpKind, Owner, Schedule};
use std::fmt::Write as _;
use std::io;

/// First line of every schedule file.
pub const VERSION_LINE: &str = "linkwright-schedule 1";

/// Bytes gathered before they are handed on.
const BLOCK: usize = 1 << 16;

/// The canonical text of a schedule within bounds.
pub fn print(schedule: &Schedule) -> String {
    let mut text = Vec::new();
    write(schedule, &mut text).expect("memory takes everything");
    String::from_utf8(text).expect("names and numbers are text")
}

/// Write the canonical text of a schedule within bounds, block by block.
pub fn write(schedule: &Schedule, out: &mut impl io::Write) -> io::Result<()> {
    let mut text = header(schedule);
    let mut step = None;
    for (id, op) in (0u32..).zip(schedule.ops()) {
        if step != Some(op.step) {
            step = Some(op.step);
            text.push_str("step ");
            number(&mut text, op.step);
            text.push('\n');
        }
        operation(&mut text, schedule, id, op);
        if text.len() >= BLOCK {
            out.write_all(text.as_bytes())?;
            text.clear();
        }
    }
    text.push_str("end\n");
    out.write_all(text.as_bytes())
}

fn header(s: &Schedule) -> String {
    let mut text = format!(
        "{VERSION_LINE}\nranks {}\nmemories {}\nelements {}\nelement_bytes {}\nspec {}{}\nroot {}\n",
        s.ranks,
        s.memories,
        s.elements,
        s.element_bytes,
        s.spec.collective.name(),
        if s.spec.out_of_place { " out_of_place" } else { "" },
        s.spec.root
    );
    if s.spec.repeats != 1 {
        text.push_str("repeats ");
        number(&mut text, s.spec.repeats);
        text.push('\n');
    }
    for b in &s.buffers {
        let at = match b.owner {
            Owner::Ranks => "ranks".to_string(),
            Owner::One(one) => one.to_string(),
        };
        let _ = writeln!(
            text,
            "buffer {} {} slices={} size={}/{} at={at}",
            b.name, b.blocks, b.slices, b.mul, b.div
        );
        parts(&mut text, b, s.ranks);
    }
    for (index, set) in s.sets.iter().enumerate() {
        let members: Vec<String> = set.iter().map(u32::to_string).collect();
        let _ = writeln!(text, "set s{index} {}", members.join(","));
    }
    text.push_str("edges given\n");
    text
}

/// `parts of 640 0:5,3:2;;1:7`: class and units of each block, rank after rank.
fn parts(text: &mut String, buffer: &Buffer, ranks: u32) {
    let Some(parts) = &buffer.parts else {
        return;
    };
    let _ = write!(text, "parts of {} ", parts.of);
    for rank in 0..ranks {
        for block in parts.blocks_of(rank) {
            let at = block as usize;
            let units = parts.starts[at + 1] - parts.starts[at];
            let _ = write!(text, "{}:{units},", parts.classes[at]);
        }
        text.push(';');
    }
    text.push('\n');
}

fn operation(text: &mut String, s: &Schedule, id: u32, op: &Op) {
    text.push('t');
    number(text, id);
    text.push(' ');
    text.push_str(op.kind.name());
    text.push(' ');
    match op.kind {
        OpKind::Aggregate => {
            text.push('s');
            number(text, s.aggregations[op.to as usize].0);
        }
        _ => number(text, op.from),
    }
    operands(text, s, op);
    text.push_str(" lane=");
    number(text, op.lane.into());
    if op.hint != Hint::None {
        text.push_str(" hint=");
        text.push_str(op.hint.name());
    }
    if op.fenced {
        text.push_str(" fenced");
    }
    let edges = s.after(id);
    match op.kind {
        OpKind::Put | OpKind::Multicast => {
            waits(text, " src_after=", edges);
            waits(text, " dst_after=", &[]);
        }
        OpKind::Get | OpKind::Aggregate => {
            waits(text, " src_after=", &[]);
            waits(text, " dst_after=", edges);
        }
        _ => waits(text, " after=", edges),
    }
    text.push('\n');
}

/// What follows the participant, or the set, that an operation begins with.
fn operands(text: &mut String, s: &Schedule, op: &Op) {
    match op.kind {
        OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Aggregate | OpKind::Local => {
            chunks(text, s, op, op.src_buffer, |range| range.0);
            text.push_str(match op.kind {
                OpKind::Multicast | OpKind::Aggregate => " -> s",
                _ => " -> ",
            });
            number(
                text,
                match op.kind {
                    OpKind::Aggregate => s.aggregations[op.to as usize].1,
                    _ => op.to,
                },
            );
            chunks(text, s, op, op.dst_buffer, |range| range.1);
            text.push_str(match op.combine {
                Combine::Replace => " replace",
                Combine::Reduce => " reduce",
            });
        }
        OpKind::Notice => {
            text.push_str(" -> ");
            number(text, op.to);
        }
        OpKind::Barrier => {
            text.push_str(" s");
            number(text, op.to);
        }
        OpKind::Compute => {
            let _ = write!(text, " work={}", s.op_work(op));
        }
        OpKind::Fence => {}
    }
}

/// `:output[0..2,5]`; a list of one range ends in a comma, so that it stays a list.
fn chunks(
    text: &mut String,
    s: &Schedule,
    op: &Op,
    buffer: BufferId,
    first: impl Fn(&(u32, u32, u32)) -> u32,
) {
    text.push(':');
    text.push_str(&s.buffer(buffer).name);
    let mut between = '[';
    for range in s.chunk_ranges(op) {
        text.push(between);
        between = ',';
        let start = first(&range);
        number(text, start);
        if range.2 != 1 {
            text.push_str("..");
            number(text, start + range.2);
        }
    }
    text.push_str(if op.scattered && op.count == 1 {
        ",]"
    } else {
        "]"
    });
}

fn waits(text: &mut String, key: &str, edges: &[Edge]) {
    text.push_str(key);
    if edges.is_empty() {
        text.push('-');
    }
    for (index, edge) in edges.iter().enumerate() {
        text.push_str(if index == 0 { "t" } else { ",t" });
        number(text, edge.op());
        if edge.is_acknowledged() {
            text.push('!');
        }
    }
}

/// Decimal digits; the formatting machinery takes several times as long.
fn number(text: &mut String, mut value: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    text.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}
