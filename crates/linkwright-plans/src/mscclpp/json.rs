//! The JSON of a plan, key by key. Unknown keys, keys that stand twice and wrong types are errors.

pub(super) use crate::skeleton::Space;
use linkwright_schedule::ir::{Buffer, Hint, Owner};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// A whole file.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub name: String,
    pub collective: String,
    pub protocol: String,
    pub inplace: bool,
    #[serde(default)]
    pub reuse_resources: bool,
    pub gpus: Vec<Gpu>,
    pub num_threads_per_block: Option<u32>,
    #[serde(default)]
    pub use_double_scratch_buffer: bool,
    pub buffer_alignment: Option<u32>,
    pub min_message_size: Option<u64>,
    pub max_message_size: Option<u64>,
    /// What the format has no place for; its executor passes over unknown keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linkwright: Option<Own>,
}

/// What makes a schedule of a plan that was written from one.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Own {
    pub root: u32,
    pub buffers: Vec<OwnBuffer>,
}

/// A buffer of the schedule; those that are neither `input` nor `output` follow each other in scratch.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnBuffer {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_at: Option<u32>,
    pub mul: u32,
    pub div: u32,
    pub blocks: u32,
    pub slices: u32,
}

impl OwnBuffer {
    pub fn of(buffer: &Buffer) -> Self {
        OwnBuffer {
            name: buffer.name.clone(),
            only_at: match buffer.owner {
                Owner::Ranks => None,
                Owner::One(one) => Some(one.0),
            },
            mul: buffer.mul,
            div: buffer.div,
            blocks: buffer.blocks,
            slices: buffer.slices,
        }
    }

    pub fn buffer(&self) -> Buffer {
        let buffer = Buffer {
            mul: self.mul,
            div: self.div,
            slices: self.slices,
            ..Buffer::vector(&self.name, self.blocks)
        };
        match self.only_at {
            Some(rank) => buffer.only_at(rank),
            None => buffer,
        }
    }
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gpu {
    pub id: u32,
    pub input_chunks: u32,
    pub output_chunks: u32,
    pub scratch_chunks: u32,
    pub threadblocks: Vec<Block>,
    pub channels: Vec<Channel>,
    pub remote_buffers: Vec<RemoteBuffer>,
    #[serde(default)]
    pub semaphores: Vec<Semaphore>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Channel {
    pub channel_type: ChannelType,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub connected_to: Vec<u32>,
    #[serde(rename = "buffer_type", alias = "buff", default, skip_serializing)]
    pub _buffer_type: Option<Space>,
    #[serde(rename = "rank_groups", default, skip_serializing)]
    pub _rank_groups: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ChannelType {
    Memory,
    Port,
    Switch,
    None,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoteBuffer {
    pub rank: u32,
    #[serde(rename = "type")]
    pub space: Space,
    pub access_channel_types: Vec<ChannelType>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Semaphore {
    pub init_value: u32,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Block {
    pub id: u32,
    pub ops: Vec<Op>,
    #[serde(default)]
    pub channels: Vec<BlockChannels>,
    #[serde(default)]
    pub remote_buffer_refs: Vec<BlockBuffers>,
    /// Lane of the schedule.
    #[serde(rename = "linkwright", skip_serializing_if = "Option::is_none")]
    pub lane: Option<u8>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockChannels {
    pub channel_type: ChannelType,
    #[serde(rename = "buff", default, skip_serializing)]
    pub _buff: Option<Space>,
    pub channel_ids: Vec<u32>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BlockBuffers {
    pub access_channel_type: ChannelType,
    pub remote_buffer_ids: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Name {
    #[serde(rename = "nop")]
    Nop,
    #[serde(rename = "barrier")]
    Barrier,
    #[serde(rename = "signal")]
    Signal,
    #[serde(rename = "rlxsignal")]
    RelaxedSignal,
    #[serde(rename = "wait")]
    Wait,
    #[serde(rename = "rlxwait")]
    RelaxedWait,
    #[serde(rename = "flush")]
    Flush,
    #[serde(rename = "sem_acquire")]
    Acquire,
    #[serde(rename = "sem_release")]
    Release,
    #[serde(rename = "put")]
    Put,
    #[serde(rename = "pws")]
    PutSignal,
    #[serde(rename = "pwsf")]
    PutSignalFlush,
    #[serde(rename = "get")]
    Get,
    #[serde(rename = "copy")]
    Copy,
    #[serde(rename = "re")]
    Reduce,
    #[serde(rename = "res")]
    ReduceSend,
    #[serde(rename = "rre")]
    ReadReduce,
    #[serde(rename = "rres")]
    ReadReduceSend,
    #[serde(rename = "ppkt")]
    PutPackets,
    #[serde(rename = "rppkt")]
    ReadPutPackets,
    #[serde(rename = "cpkt")]
    CopyPackets,
    #[serde(rename = "upkt")]
    UnpackPackets,
    #[serde(rename = "repkt")]
    ReducePackets,
    #[serde(rename = "respkt")]
    ReduceSendPackets,
    #[serde(rename = "recpkt")]
    ReduceCopyPackets,
    #[serde(rename = "recspkt")]
    ReduceCopySendPackets,
    #[serde(rename = "glres")]
    SwitchReduceStore,
    #[serde(rename = "glre")]
    SwitchReduce,
    #[serde(rename = "gstore")]
    SwitchStore,
    #[serde(rename = "gstorepkt")]
    SwitchStorePackets,
    #[serde(rename = "pipeline")]
    Pipeline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReduceOp {
    Sum,
    Min,
    Max,
}

/// One operation; which keys it needs follows from its name.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Op {
    pub name: Name,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub src_buff: Vec<Chunks>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dst_buff: Vec<Chunks>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channel_ids: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_type: Option<ChannelType>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce_op: Option<ReduceOp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semaphore_ids: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier_id: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_threadblocks: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tbg_info: Option<Group>,
    #[serde(rename = "iter_context", default, skip_serializing)]
    pub _iter_context: Option<IgnoredAny>,
    #[serde(rename = "ops", default, skip_serializing)]
    pub _ops: Option<IgnoredAny>,
    #[serde(rename = "linkwright", skip_serializing_if = "Option::is_none")]
    pub own: Option<OwnOp>,
}

/// Part `tb_id` of the `tbg_size` thread blocks that share an operation.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub tb_id: u32,
    pub tbg_size: u32,
}

/// The operation of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnOp {
    /// Its number, not counting notices; several ranges of one operation follow each other.
    pub op: u32,
    pub step: u32,
    #[serde(with = "Direction", default, skip_serializing_if = "is_free")]
    pub hint: Hint,
    /// Whether it waits for everything earlier of its rank, and everything later waits for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fenced: bool,
}

fn is_free(hint: &Hint) -> bool {
    *hint == Hint::None
}

/// Words for the way that a transfer prefers.
#[derive(Deserialize, Serialize)]
#[serde(remote = "Hint")]
enum Direction {
    #[serde(skip)]
    None,
    #[serde(rename = "+x")]
    PlusX,
    #[serde(rename = "-x")]
    MinusX,
    #[serde(rename = "+y")]
    PlusY,
    #[serde(rename = "-y")]
    MinusY,
}

/// Chunks of an own buffer (`type`), of a remote one (`buffer_id`), or of all at once (`switch_channel_id`).
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Chunks {
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_id: Option<u32>,
    #[serde(default, skip_serializing)]
    pub switch_channel_id: Option<u32>,
    /// Of what a switch combines.
    #[serde(default, skip_serializing)]
    pub rank: Option<u32>,
    pub index: u32,
    pub size: u32,
}
