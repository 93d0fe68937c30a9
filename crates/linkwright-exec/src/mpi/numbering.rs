//! Which messages a rank has, their tags, and what it has to do in the order of ids.
//!
//! Both ends of a message go through all operations by id and count the messages of their ordered pair,
//! so they give it the same tag without talking.

use super::steps::{at, Message, Place};
use crate::buffers::{acknowledged, Contents};
use crate::error::Result;
use linkwright_schedule::ir::{Op, OpKind};
use std::collections::HashMap;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Data,
    Request,
    Acknowledgement,
}

/// Something this rank has to do with an operation, in the order of ids.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Issue(u32),
    Receive { op: u32, target: u32 },
    Serve(u32),
}

impl Event {
    pub(super) fn op(self) -> u32 {
        match self {
            Event::Issue(op) | Event::Serve(op) | Event::Receive { op, .. } => op,
        }
    }
}

/// The rank that a participant lives with.
pub(super) fn host(contents: &Contents, participant: u32) -> u32 {
    let ranks = contents.schedule.ranks;
    match participant < ranks {
        true => participant,
        false => (participant - ranks) % ranks,
    }
}

/// The messages of one rank.
pub(super) struct Numbering<'a> {
    contents: &'a Contents<'a>,
    me: u32,
    part_bytes: usize,
    acknowledged: Vec<bool>,
    index: HashMap<(u32, u32, Role), u32>,
    /// Messages so far to and from each peer.
    sent: HashMap<u32, u32>,
    received: HashMap<u32, u32>,
    pub messages: Vec<Message>,
    /// Whether each message comes here.
    pub incoming: Vec<bool>,
    pub events: Vec<Event>,
    /// Requests of all messages.
    pub requests: u32,
}

/// Numbers the messages of rank `me`.
pub(super) fn number<'a>(
    contents: &'a Contents,
    me: u32,
    part_bytes: usize,
) -> Result<Numbering<'a>> {
    let mut numbering = Numbering {
        contents,
        me,
        part_bytes,
        acknowledged: acknowledged(contents.schedule),
        index: HashMap::new(),
        sent: HashMap::new(),
        received: HashMap::new(),
        messages: Vec::new(),
        incoming: Vec::new(),
        events: Vec::new(),
        requests: 0,
    };
    for (id, op) in (0u32..).zip(contents.schedule.ops()) {
        numbering.enter(id, op)?;
    }
    Ok(numbering)
}

impl Numbering<'_> {
    /// Numbers the messages of an operation and notes what this rank has to do.
    fn enter(&mut self, id: u32, op: &Op) -> Result<()> {
        let source = match op.kind {
            OpKind::Barrier | OpKind::Aggregate => {
                let reason = format!("operation {id} is a {:?}; lower it first", op.kind);
                return Err(super::waived(reason));
            }
            OpKind::Local | OpKind::Compute | OpKind::Fence => op.from,
            OpKind::Put | OpKind::Get | OpKind::Multicast | OpKind::Notice => {
                host(self.contents, op.from)
            }
        };
        if op.initiator() == self.me {
            self.events.push(Event::Issue(id));
        }
        if !op.is_message() {
            return Ok(());
        }
        let bytes = self.contents.extents(id, op)?.iter().map(|r| r.bytes).sum();
        if op.kind == OpKind::Get {
            if source == self.me && op.to != self.me {
                self.events.push(Event::Serve(id));
            }
            self.number(id, op.to, Role::Request, op.to, source, 0);
            self.number(id, op.to, Role::Data, source, op.to, bytes);
            return Ok(());
        }
        for &target in self.contents.schedule.targets(op) {
            let destination = host(self.contents, target);
            self.number(id, target, Role::Data, source, destination, bytes);
            if self.acknowledged[id as usize] {
                self.number(id, target, Role::Acknowledgement, destination, source, 0);
            }
            if destination == self.me && source != self.me {
                self.events.push(Event::Receive { op: id, target });
            }
        }
        Ok(())
    }

    fn number(&mut self, id: u32, target: u32, role: Role, from: u32, to: u32, bytes: usize) {
        let (peer, incoming) = match (from == self.me, to == self.me) {
            (true, false) => (to, false),
            (false, true) => (from, true),
            _ => return,
        };
        let counts = if incoming {
            &mut self.received
        } else {
            &mut self.sent
        };
        let count = counts.entry(peer).or_default();
        let parts = bytes.div_ceil(self.part_bytes).max(1) as u32;
        let message = Message {
            peer,
            tag: *count,
            spot: at(Place::Staging, 0),
            bytes,
            request: self.requests,
        };
        *count += parts;
        self.requests += parts;
        let index = self.messages.len() as u32;
        self.index.insert((id, target, role), index);
        self.messages.push(message);
        self.incoming.push(incoming);
    }

    pub(super) fn message(&self, id: u32, target: u32, role: Role) -> Option<u32> {
        self.index.get(&(id, target, role)).copied()
    }
}
