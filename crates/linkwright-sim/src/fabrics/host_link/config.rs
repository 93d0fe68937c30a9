//! `[fabric]` of a machine file with `kind = "host_link"`.

use super::pcie::PcieLink;
use crate::error::SimError;
use linkwright_core::machine::{Machine, Section};
use linkwright_core::{BytesPerSec, MachineError, TimePs};

/// The role of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A processor of the host, with the memory that devices may reach.
    Core,
    /// Other memory of the host.
    Memory,
    /// A part of the device behind the link.
    Device,
}

/// The parameters of the model.
#[derive(Clone, Debug)]
pub struct Config {
    /// Role of each endpoint.
    pub roles: Vec<Role>,
    /// The link.
    pub link: PcieLink,
    /// From the end of a posted packet on the wire to its effect.
    pub write_latency: TimePs,
    /// From the end of a request on the wire to the beginning of its completion.
    pub read_latency: TimePs,
    /// Read requests of one device under way at once.
    pub outstanding_reads: u64,
    /// Payload that the engine of a device moves, each way; the speed of the link if absent.
    pub dma_rate: Option<BytesPerSec>,
    /// Bytes of the descriptor that a device reads before each transfer that it initiates.
    pub descriptor: u64,
    /// Payload of a doorbell.
    pub doorbell: u64,
    /// Bytes of one store or load of a processor in the window of a device.
    pub store_line: u64,
    /// From one such store of a processor to the next.
    pub store_interval: TimePs,
    /// Fixed cost of a copy in the host.
    pub copy_start: TimePs,
    /// Copies towards a processor's buffers.
    pub copy_read_rate: BytesPerSec,
    /// Copies out of a processor's buffers.
    pub copy_write_rate: BytesPerSec,
    /// Moves inside the device; instant if absent.
    pub device_rate: Option<BytesPerSec>,
}

impl Config {
    /// Read the fabric of `machine`.
    pub fn from_machine(machine: &Machine) -> Result<Config, SimError> {
        let mut s = machine.fabric_section();
        let roles = roles(machine, &mut s)?;
        let link = PcieLink::read(&mut s)?;
        let config = Config {
            roles,
            link,
            write_latency: s.time("write_latency")?,
            read_latency: s.time("read_latency")?,
            outstanding_reads: s.count("outstanding_reads")?,
            dma_rate: s.optional_rate("dma_rate")?,
            descriptor: s.optional_bytes("descriptor")?.map_or(0, |b| b.0),
            doorbell: s.bytes("doorbell")?.0,
            store_line: s.bytes("store_line")?.0,
            store_interval: s.time("store_interval")?,
            copy_start: s.time("copy_start")?,
            copy_read_rate: s.rate("copy_read_rate")?,
            copy_write_rate: s.rate("copy_write_rate")?,
            device_rate: s.optional_rate("device_rate")?,
        };
        if config.outstanding_reads == 0 {
            let problem = "with 0 requests at once nothing is ever read; write at least 1";
            return Err(s.inconsistent("outstanding_reads", problem).into());
        }
        if !(1..=link.max_payload).contains(&config.store_line) {
            let problem = format!(
                "a store is one packet of 1 to {} B, the maximum payload",
                link.max_payload
            );
            return Err(s.inconsistent("store_line", problem).into());
        }
        if config.descriptor > link.max_read_request {
            let problem = format!(
                "a descriptor is read by one request of at most {} B",
                link.max_read_request
            );
            return Err(s.inconsistent("descriptor", problem).into());
        }
        s.finish()?;
        Ok(config)
    }
}

/// `cores` and `devices` name endpoints; whatever is neither is memory of the host.
fn roles(machine: &Machine, s: &mut Section<'_>) -> Result<Vec<Role>, MachineError> {
    let mut roles = vec![Role::Memory; machine.endpoints().len()];
    for (key, role) in [("cores", Role::Core), ("devices", Role::Device)] {
        for name in s.texts(key)? {
            let known = machine.endpoints().iter().position(|e| e.name == name);
            let Some(index) = known else {
                let problem = format!("no endpoint is named \"{name}\"; name one of [endpoints]");
                return Err(s.inconsistent(key, problem));
            };
            if roles[index] != Role::Memory {
                let problem = format!("\"{name}\" is named twice; keep it once");
                return Err(s.inconsistent(key, problem));
            }
            roles[index] = role;
        }
    }
    let idle = (machine.endpoints().iter().zip(&roles).take(machine.ranks()))
        .find(|(_, role)| **role == Role::Memory);
    if let Some((endpoint, _)) = idle {
        let problem = format!(
            "\"{}\" is a rank, so it acts; put it into `cores` or `devices`, or make it an [[endpoints.memory]]",
            endpoint.name
        );
        return Err(s.inconsistent("cores", problem));
    }
    Ok(roles)
}
