//! How much is read, and how much the runtimes execute.
//!
//! Limits of reading keep memory and time in proportion to what a plan may reasonably be. Limits of writing are
//! those of the MSCCL runtime for NCCL, so that it loads what is written here. RCCL's allows 64 steps in a thread
//! block and 64 thread blocks, of which nothing is said here because its limits are compiled in and have changed.

/// Most steps of a plan that is read.
pub(super) const MAX_STEPS: usize = 1 << 19;
/// Most thread blocks of one GPU that are read: each is a lane of its rank.
pub(super) const MAX_BLOCKS: u32 = 255;
/// Most chunks of all GPUs together, each with as much scratch and relay as the one with most, of a plan that is read.
pub(super) const MAX_CELLS: u64 = 1 << 22;
/// Most chunks that all steps together may touch, of a plan that is read.
pub(super) const MAX_TOUCHED: u64 = 1 << 24;

/// How a protocol of the runtime fills a connection, with its default buffers.
pub(super) struct Protocol {
    pub name: &'static str,
    /// Messages that a connection holds.
    pub slots: u32,
    /// Bytes of the largest message.
    pub message_bytes: u64,
}

/// The protocols: a connection has 8 buffers. A message of `Simple` takes 4 of them, of 512 KiB; one of `LL` takes
/// one, half of whose 64 KiB are flags; one of `LL128` takes one of 600 KiB, of which 15/16 are data.
pub(super) const PROTOCOLS: [Protocol; 3] = [
    Protocol {
        name: "Simple",
        slots: 2,
        message_bytes: 2 << 20,
    },
    Protocol {
        name: "LL",
        slots: 8,
        message_bytes: 32 << 10,
    },
    Protocol {
        name: "LL128",
        slots: 8,
        message_bytes: 576_000,
    },
];
/// Largest size for which the runtime uses a plan that names none, in bytes.
pub(super) const DEFAULT_MAX_BYTES: i64 = 1 << 27;

/// Most steps in a thread block (`MSCCL_MAX_NUM_STEPS`).
pub(super) const STEPS_WRITTEN: u32 = 256;
/// Most thread blocks on a GPU (`MSCCL_MAX_NUM_THREAD_BLOCKS`).
pub(super) const BLOCKS_WRITTEN: usize = 216;
/// Most thread blocks on a channel of a GPU that send, and most that receive.
pub(super) const BLOCKS_ON_CHANNEL: u32 = 32;
/// Most channels (`MAXCHANNELS`).
pub(super) const CHANNELS_WRITTEN: u32 = 32;
/// Chunks of a step must be fewer (`MSCCL_MAX_COUNT`).
pub(super) const COUNT_WRITTEN: u32 = 72;
/// Most elements that the runtime's reader keeps for a GPU, with some room for the others.
pub(super) const NODES_WRITTEN: usize = 4000;
