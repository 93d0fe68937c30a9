//! How much is read, and how much the runtimes execute.
//!
//! Limits of reading keep memory and time in proportion to what a plan may reasonably be. Limits of writing are
//! those of the MSCCL runtime for NCCL, so that it loads what is written here. RCCL's allows 64 steps in a thread
//! block and 64 thread blocks, of which nothing is said here because its limits are compiled in and have changed.

/// Most steps of a plan that is read.
pub(super) const MAX_STEPS: usize = 1 << 19;
/// Most thread blocks of one GPU that are read: each is a lane of its rank.
pub(super) const MAX_BLOCKS: u32 = 255;
/// Most chunks of all GPUs together, of a plan that is read.
pub(super) const MAX_CELLS: u64 = 1 << 23;
/// Most chunks that all steps together may touch, of a plan that is read.
pub(super) const MAX_TOUCHED: u64 = 1 << 24;

/// Messages that a connection holds under the protocol `Simple`: 8 buffers, of which a message takes 4.
pub(super) const SLOTS_SIMPLE: u32 = 2;
/// The same under `LL` and `LL128`, where a message takes one of the 8 buffers.
pub(super) const SLOTS_LOW_LATENCY: u32 = 8;

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
