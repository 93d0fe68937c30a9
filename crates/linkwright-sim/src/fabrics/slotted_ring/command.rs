//! DMA commands: the forms that the hardware accepts, and their requests.
//!
//! A command moves 1, 2, 4, 8 or a multiple of 16 bytes, at most 16 KB, between naturally aligned
//! addresses; a list command up to 2,048 such pieces. The bus sees requests of at most one line:
//!
//! ```text
//!   requests = ceil((EA mod 128 + size) / 128)        EA 64, 256 bytes: 64 + 128 + 64, three
//! ```
//!
//! and one more where local and effective address lie differently in their lines. A message of a
//! schedule has any size: it becomes commands of 16 KB, the rest in multiples of 16, 8, 4, 2 and 1.

use super::config::RingConfig;
use thiserror::Error;

/// The origin of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// The element's own SPU, through channels.
    Spu,
    /// Another element, through mapped registers.
    Proxy,
}

/// A contiguous piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Address in the local store.
    pub local: u32,
    /// Address at the other end.
    pub effective: u64,
    /// Bytes.
    pub bytes: u32,
}

linkwright_core::words! {
    /// What a command waits for in its tag group.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Order {
        /// Nothing.
        None = "none",
        /// All earlier commands of the group in the same queue.
        Fence = "fence",
        /// The same, and later ones of the group wait for it.
        Barrier = "barrier",
    }

    /// What the bus is used for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        /// Data out of the local store.
        Put = "put",
        /// Data into it.
        Get = "get",
        /// Read a lock line and reserve it.
        Reserve = "reserve",
        /// Write it if the reservation still holds.
        Conditional = "conditional",
    }
}

/// A DMA command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Direction, seen from the element that owns the queue.
    pub kind: Kind,
    /// Ring position of the other end.
    pub other: u8,
    /// First piece.
    pub piece: Piece,
    /// The others of a list, last first; empty for a single command.
    pub rest: Vec<Piece>,
    /// Whether its pieces come from a list in the local store.
    pub list: bool,
    /// Tag group, 0 to 31.
    pub tag: u8,
    /// Order within the group.
    pub order: Order,
    /// Which queue.
    pub queue: Queue,
    /// Handed back when it is complete.
    pub handle: u32,
}

impl Command {
    /// A single aligned transfer from an SPU.
    pub fn single(kind: Kind, other: u8, bytes: u32, handle: u32) -> Self {
        let piece = Piece {
            local: 0,
            effective: 0,
            bytes,
        };
        Command {
            kind,
            other,
            piece,
            rest: Vec::new(),
            list: false,
            tag: 0,
            order: Order::None,
            queue: Queue::Spu,
            handle,
        }
    }

    /// The same as a list of `pieces` pieces, each behind the one before, at most `longest`.
    pub fn listed(mut self, pieces: u32, longest: usize) -> Result<Self, Refused> {
        // Checked before the pieces are made: a typing error must not fill the memory.
        if pieces as usize > longest {
            return Err(Refused::List(pieces as usize, longest));
        }
        let Piece {
            local,
            effective,
            bytes,
        } = self.piece;
        let piece = |index: u32| Piece {
            local: local.wrapping_add(index.wrapping_mul(bytes)),
            effective: effective + u64::from(index) * u64::from(bytes),
            bytes,
        };
        self.rest = (1..pieces).rev().map(piece).collect();
        self.list = true;
        Ok(self)
    }

    /// Apply the rules of the hardware.
    pub fn check(&self, config: &RingConfig) -> Result<(), Refused> {
        if self.tag > 31 {
            return Err(Refused::Tag(self.tag));
        }
        let elements = self.rest.len() + 1;
        if self.list && elements > config.list_longest {
            return Err(Refused::List(elements, config.list_longest));
        }
        if self.list && self.queue == Queue::Proxy {
            return Err(Refused::ProxyList);
        }
        let pieces = std::iter::once(&self.piece).chain(&self.rest);
        pieces
            .into_iter()
            .try_for_each(|piece| piece.check(config.dma_largest))
    }
}

impl Piece {
    fn check(&self, largest: u32) -> Result<(), Refused> {
        let bytes = self.bytes;
        if bytes > largest {
            return Err(Refused::Large(bytes, largest));
        }
        if !matches!(bytes, 1 | 2 | 4 | 8) && (bytes == 0 || bytes % 16 != 0) {
            return Err(Refused::Size(bytes));
        }
        let grain = bytes.min(16);
        let misplaced = |address: u64| address % u64::from(grain) != 0;
        match [u64::from(self.local), self.effective]
            .into_iter()
            .find(|&a| misplaced(a))
        {
            Some(address) => Err(Refused::Alignment(address, bytes, grain)),
            None => Ok(()),
        }
    }

    /// Bus requests of this piece.
    pub fn requests(&self, config: &RingConfig) -> u32 {
        let line = config.line_bytes;
        let within = (self.effective % u64::from(line)) as u32;
        let apart = within != self.local % line;
        (within + self.bytes).div_ceil(line).max(1) + u32::from(apart) * config.offset_requests
    }

    /// Take off the bytes of the next request.
    pub fn next_request(&mut self, line: u32) -> u32 {
        let room = line - (self.effective % u64::from(line)) as u32;
        let bytes = self.bytes.min(room);
        self.effective += u64::from(bytes);
        self.local += bytes;
        self.bytes -= bytes;
        bytes
    }
}

/// Sizes of the commands that move a message of `bytes` bytes; one of 0 bytes carries a token.
pub fn sizes(bytes: u64, largest: u32) -> impl Iterator<Item = u32> {
    let largest = u64::from(largest);
    let tail = bytes % largest;
    let token = (bytes == 0).then_some(0);
    let rest = [tail / 16 * 16, tail & 8, tail & 4, tail & 2, tail & 1];
    let full = std::iter::repeat_n(largest as u32, (bytes / largest) as usize);
    let rest = rest
        .into_iter()
        .filter(|&part| part > 0)
        .map(|part| part as u32);
    full.chain(rest).chain(token)
}

/// A command that the hardware does not accept.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// Not 1, 2, 4, 8 or a multiple of 16.
    #[error("a DMA of {0} bytes: sizes are 1, 2, 4, 8 or a multiple of 16 bytes; split it")]
    Size(u32),
    /// Above the largest.
    #[error("a DMA of {0} bytes: at most {1} bytes; split it or use a list")]
    Large(u32, u32),
    /// An address that is not a multiple of the size, or of 16.
    #[error("address {0} for a DMA of {1} bytes: must be a multiple of {2}; align it")]
    Alignment(u64, u32, u32),
    /// Too many elements.
    #[error("a list of {0} elements: at most {1}; use several lists")]
    List(usize, usize),
    /// A list from the proxy queue.
    #[error("a list command in the proxy queue: only the own SPU may issue lists; queue it there")]
    ProxyList,
    /// No such tag group.
    #[error("tag {0}: tags are 0 to 31; choose one of them")]
    Tag(u8),
}
