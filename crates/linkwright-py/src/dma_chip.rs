//! The chip of a machine with slotted rings, command by command.

use linkwright_sim::fabrics::slotted_ring::command::{Command, Kind, Order, Piece, Queue};
use linkwright_sim::fabrics::slotted_ring::{Chip, News, RingConfig};
use pyo3::prelude::*;

use crate::errors;
use crate::machine::Machine;

/// A handle; whether a completed command held its reservation, None of one that entered its queue; and of a completed
/// one the bus cycles at which it was issued, queued, selected, requested, had data and was complete.
type Told = (u32, Option<bool>, Vec<u64>);

/// Rings, arbiter and DMA engines of a machine whose fabric is `slotted_ring`, for experiments without a schedule.
///
/// Times are bus cycles.
///
/// Attributes:
///     elements: names in ring order; commands name elements by their places here.
///     memory: the place of the memory controller.
///     line_bytes: the most bytes of one request.
///     mmio: what writing or reading a mapped register takes.
///     mailbox: words that a mailbox holds.
///     status: what reading a completion takes.
///     period_ps: the length of a bus cycle.
#[pyclass(module = "linkwright._native")]
pub struct DmaChip {
    #[pyo3(get)]
    elements: Vec<String>,
    #[pyo3(get)]
    memory: u8,
    #[pyo3(get)]
    line_bytes: u32,
    #[pyo3(get)]
    mmio: u64,
    #[pyo3(get)]
    mailbox: usize,
    #[pyo3(get)]
    status: u64,
    #[pyo3(get)]
    period_ps: u64,
    config: RingConfig,
    chip: Chip,
    now: u64,
}

#[pymethods]
impl DmaChip {
    /// The chip of `machine`, at rest.
    #[new]
    fn new(machine: &Machine) -> PyResult<Self> {
        let described = &machine.described;
        let config = RingConfig::from_machine(described).map_err(errors::machine)?;
        Ok(DmaChip {
            elements: config.elements.clone(),
            memory: config.memory,
            line_bytes: config.line_bytes,
            mmio: config.mmio,
            mailbox: config.mailbox,
            status: described
                .default_path()
                .barrier
                .0
                .div_ceil(config.period_ps),
            period_ps: config.period_ps,
            chip: Chip::new(&config),
            config,
            now: 0,
        })
    }

    /// Give the DMA engine of `unit` a command at cycle `now`; an error names the rule of the hardware that it breaks.
    ///
    /// `kind` is `put`, `get`, `reserve` or `conditional`; `order` within its `tag` is `none`, `fence` or `barrier`; a
    /// list has `pieces` of `bytes` bytes each; `local` and `at` are the addresses of its ends; `proxy` takes the queue
    /// of other elements.
    #[pyo3(signature = (now, unit, handle, kind, other, bytes, *, pieces=None, local=0, at=0, tag=0, order="none",
        proxy=false))]
    #[allow(clippy::too_many_arguments)] // the parts of one command
    fn submit(
        &mut self,
        now: u64,
        unit: u8,
        handle: u32,
        kind: &str,
        other: u8,
        bytes: u32,
        pieces: Option<u32>,
        local: u32,
        at: u64,
        tag: u8,
        order: &str,
        proxy: bool,
    ) -> PyResult<()> {
        let (Some(kind), Some(order)) = (Kind::from_name(kind), Order::from_name(order)) else {
            let message = format!("no command `{kind}` with order `{order}`; see DmaChip.submit");
            return Err(errors::raise("UsageError", message));
        };
        let mut command = Command::single(kind, other, bytes, handle);
        command.piece = Piece {
            local,
            effective: at,
            bytes,
        };
        (command.tag, command.order) = (tag, order);
        command.queue = if proxy { Queue::Proxy } else { Queue::Spu };
        let listed = match pieces {
            Some(pieces) => command.listed(pieces, self.config.list_longest),
            None => Ok(command),
        };
        let refused = |refused| errors::raise("UsageError", refused);
        let command = listed.map_err(refused)?;
        command.check(&self.config).map_err(refused)?;
        self.chip.submit(now, unit, command);
        Ok(())
    }

    /// Let `advance` return at cycle `at`, even if nothing happens then.
    fn wake_at(&mut self, at: u64) {
        self.chip.wake_at(at);
    }

    /// Go on until there is news: the cycle, and what commands did then; None if nothing more can happen.
    fn advance(&mut self) -> (u64, Option<Vec<Told>>) {
        let (now, news) = self.chip.advance(self.now);
        self.now = now;
        let told = |news: &News| match *news {
            News::Woken => None,
            News::Queued(handle) => Some((handle, None, Vec::new())),
            News::Complete(handle, held, life) => Some((handle, Some(held), life.moments())),
        };
        let commands = news.iter().filter_map(told).collect();
        (now, (!news.is_empty()).then_some(commands))
    }
}
