//! From one root on all ports: trees in the copies of an exchange.
//!
//! A broadcast takes the steps of an exchange backwards, far ones first, and of each only the messages of those
//! who have the part to those who do not: a tree. A reduce is the broadcast backwards.

use super::{fold_in, fold_out, Copy, Message, Ports};
use crate::collectives::prelude::*;

impl Ports {
    /// Copy the parts of the root's vector to everyone, along a tree in each copy.
    pub fn broadcast_whole(&self, shape: &Shape) -> Result<Schedule> {
        let copies = self.copies();
        let mut b = Builder::new(Collective::Broadcast, shape);
        let data = b.buffer(Buffer::vector("output", copies.len() as u32));
        b.step();
        for copy in copies
            .iter()
            .filter(|copy| copy.home(shape.root) != shape.root)
        {
            let part = data.at(copy.number);
            b.put(shape.root, part, copy.home(shape.root), part)
                .lane(copy.number as u8);
        }
        let trees: Vec<_> = copies.iter().map(|copy| copy.tree(shape)).collect();
        for round in 0..self.rounds() {
            b.step();
            for (copy, tree) in copies.iter().zip(&trees) {
                let part = data.at(copy.number);
                for message in &tree[round] {
                    b.put(message.from, part, message.to, part)
                        .lane(copy.number as u8)
                        .hint(message.way);
                }
            }
        }
        fold_out(&mut b, &copies, data, 1, Some(shape.root));
        b.finish()
    }

    /// Combine the parts of everyone's vector at the root, along the same trees.
    pub fn reduce_whole(&self, shape: &Shape) -> Result<Schedule> {
        let copies = self.copies();
        let mut b = Builder::new(Collective::Reduce, shape);
        let data = b.buffer(Buffer::vector("output", copies.len() as u32));
        b.own_scratch();
        fold_in(&mut b, &copies, data, 1);
        let trees: Vec<_> = copies.iter().map(|copy| copy.tree(shape)).collect();
        for round in (0..self.rounds()).rev() {
            b.step();
            for (copy, tree) in copies.iter().zip(&trees) {
                let part = data.at(copy.number);
                for message in &tree[round] {
                    b.put(message.to, part, message.from, part)
                        .reduce()
                        .lane(copy.number as u8)
                        .hint(message.way.opposite());
                }
            }
        }
        b.step();
        for copy in copies
            .iter()
            .filter(|copy| copy.home(shape.root) != shape.root)
        {
            let part = data.at(copy.number);
            b.put(copy.home(shape.root), part, shape.root, part)
                .lane(copy.number as u8);
        }
        b.finish()
    }
}

impl Copy<'_> {
    /// Who acts for `rank` once all axes have folded.
    fn home(&self, rank: u32) -> u32 {
        (0..self.axes.len()).fold(rank, |rank, fold| {
            let folded = self.folded(fold);
            let pair = folded.iter().find(|pair| pair.0 == rank);
            pair.map_or(rank, |pair| pair.1)
        })
    }

    /// Messages by which the part of the root reaches every member, round by round.
    fn tree(&self, shape: &Shape) -> Vec<Vec<Message>> {
        let mut reached = vec![false; shape.ranks as usize];
        reached[self.home(shape.root) as usize] = true;
        let round = |step| {
            let mut round = Vec::new();
            self.messages(step, |message| {
                if reached[message.from as usize] && !reached[message.to as usize] {
                    round.push(message);
                }
            });
            for message in &round {
                reached[message.to as usize] = true;
            }
            round
        };
        (0..self.steps.len()).rev().map(round).collect()
    }
}
