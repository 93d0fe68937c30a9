//! One operation: its kind, its peer and its options.

use super::Parser;
use crate::error::Result;
use crate::goal::lexer::{short, Token};
use crate::goal::plan::{Kind, Step};

/// Most operations that one file may have: beyond, reading would need more than 1 GB.
const MAX_STEPS: usize = 1 << 22;

impl<'a> Parser<'a> {
    pub(super) fn operation(
        &mut self,
        rank: u32,
        line: u32,
        label: &'a str,
        word: &str,
    ) -> Result<()> {
        let mut step = Step {
            rank,
            line,
            lane: 0,
            label,
            kind: Kind::Calc { ns: 0 },
        };
        match word {
            "calc" => {
                let ns = self.number("a time in ns")?;
                step.kind = Kind::Calc { ns };
                self.options(&mut step, None)?;
            }
            "send" | "recv" => {
                let bytes = self.bytes()?;
                let peer = self.peer(word, rank)?;
                let mut tag = 0;
                self.options(&mut step, Some(&mut tag))?;
                step.kind = match word {
                    "send" => Kind::Send {
                        to: peer,
                        bytes,
                        tag,
                    },
                    _ => Kind::Recv {
                        from: peer,
                        bytes,
                        tag,
                    },
                };
            }
            _ => {
                return Err(self.error(format!(
                    "`{}` is not an operation; write `send`, `recv` or `calc`",
                    short(word)
                )))
            }
        }
        self.add(step)
    }

    fn add(&mut self, step: Step<'a>) -> Result<()> {
        let index = self.plan.steps.len();
        if index >= MAX_STEPS {
            return Err(step.error(format!(
                "more than {MAX_STEPS} operations; cut the trace into shorter ones"
            )));
        }
        if !step.label.is_empty() {
            if let Some(before) = self.labels.insert(step.label, index as u32) {
                return Err(step.error(format!(
                    "label `{}` of rank {} is there already, on line {}; give each operation a label of its own",
                    short(step.label),
                    step.rank,
                    self.plan.steps[before as usize].line
                )));
            }
        }
        self.plan.steps.push(step);
        Ok(())
    }

    /// `8b`
    fn bytes(&mut self) -> Result<u64> {
        let bytes = self.number("a size such as `8b`")?;
        self.word("b")?;
        match bytes {
            0 => Err(self.error("a message of 0 B; the smallest is `1b`")),
            _ => Ok(bytes),
        }
    }

    /// `to 3` or `from 3`.
    fn peer(&mut self, word: &str, rank: u32) -> Result<u32> {
        self.word(if word == "send" { "to" } else { "from" })?;
        if word == "recv" && self.token == Token::Any {
            return Err(self.error(
                "a receive from any source (`-1`): which message it gets depends on time; name the source",
            ));
        }
        let peer = self.existing_rank()?;
        if peer == rank {
            return Err(self.error(format!(
                "rank {rank} exchanges a message with itself; leave it out, or write `calc` for its time"
            )));
        }
        Ok(peer)
    }

    /// `tag 0 cpu 0 nic 0`, each at most once; a calc has no tag.
    fn options(&mut self, step: &mut Step<'a>, mut tag: Option<&mut u32>) -> Result<()> {
        let mut seen = [false; 3];
        while let Token::Word(word) = self.token {
            let names = ["tag", "cpu", "nic"];
            let Some(which) = names.iter().position(|name| *name == word) else {
                return Err(self.unexpected("`tag`, `cpu`, `nic` or the end of the line"));
            };
            if std::mem::replace(&mut seen[which], true) {
                return Err(self.error(format!("`{word}` stands twice; write it once")));
            }
            self.advance()?;
            match (which, &mut tag) {
                (0, None) => return Err(self.error("`calc` has no tag; leave it out")),
                (0, Some(tag)) => **tag = self.tag()?,
                (1, _) => step.lane = self.at_most("cpu", 255)? as u8,
                _ => {
                    self.at_most("nic", 255)?;
                }
            }
        }
        Ok(())
    }

    fn tag(&mut self) -> Result<u32> {
        if self.token == Token::Any {
            return Err(
                self.error("any tag (`-1`): which message is meant depends on time; name the tag")
            );
        }
        Ok(self.at_most("tag", u64::from(u32::MAX) - 1)? as u32)
    }

    fn at_most(&mut self, what: &str, most: u64) -> Result<u64> {
        let number = self.number(&format!("a number after `{what}`"))?;
        match number <= most {
            true => Ok(number),
            false => Err(self.error(format!("{what} {number}; the largest is {most}"))),
        }
    }

    pub(super) fn existing_rank(&mut self) -> Result<u32> {
        let rank = self.number("a rank")?;
        match rank < u64::from(self.plan.ranks) {
            true => Ok(rank as u32),
            false => Err(self.error(format!(
                "rank {rank} does not exist; there are 0 to {}",
                self.plan.ranks - 1
            ))),
        }
    }
}
