//! Figures of one workload: a line between processes, a row of the table, or JSON.

/// Names of the stages, in their order.
pub const STAGES: [&str; 6] = ["machine", "build", "lower", "verify", "engine", "limits"];
const ENGINE: usize = 4;

/// The figures of one launch, or medians over several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Messages with data; flit hops if messages were offered to the fabric directly.
    pub transfers: u64,
    /// Messages without.
    pub notices: u64,
    /// Operations of the schedule that ran.
    pub operations: u64,
    /// Processor time of each stage.
    pub seconds: [f64; 6],
    /// Processor time of a round: the stages, and freeing their results.
    pub whole: f64,
    /// Peak memory of the process.
    pub peak_bytes: u64,
    /// Memory before the first stage.
    pub base_bytes: u64,
    /// Simulated time, to detect runs that differ.
    pub simulated_ps: u64,
}

pub const HEAD: &str =
    "workload                     transfers   notices   machine     build     lower    verify    engine    \
                        limits   M/s engine   M/s total  peak MB  B/message";

impl Figures {
    /// All messages that the fabric carried.
    pub fn messages(&self) -> u64 {
        self.transfers + self.notices
    }

    /// Million messages per second of the engine.
    fn engine_rate(&self) -> f64 {
        self.messages() as f64 / self.seconds[ENGINE] / 1e6
    }

    /// Million messages per second of all stages together.
    fn total_rate(&self) -> f64 {
        self.messages() as f64 / self.seconds.iter().sum::<f64>() / 1e6
    }

    /// Peak memory beyond that before the first stage, per message.
    fn bytes_per_message(&self) -> f64 {
        self.peak_bytes.saturating_sub(self.base_bytes) as f64 / self.messages() as f64
    }

    /// One row of the table.
    pub fn row(&self, name: &str) -> String {
        let times: String = self.seconds.iter().map(|s| format!(" {s:9.4}")).collect();
        format!(
            "{name:28} {:>9} {:>9}{times} {:12.2} {:11.2} {:8.1} {:10.1}",
            self.transfers,
            self.notices,
            self.engine_rate(),
            self.total_rate(),
            self.peak_bytes as f64 / 1e6,
            self.bytes_per_message()
        )
    }

    /// One object.
    pub fn json(&self, name: &str) -> String {
        let times = STAGES.iter().zip(self.seconds);
        let times: String = times.map(|(s, t)| format!("\"{s}_s\": {t:.9}, ")).collect();
        format!(
            "{{\"workload\": \"{name}\", \"transfers\": {}, \"notices\": {}, \"operations\": {}, {times}\"whole_s\": {:.9}, \"engine_rate\": {:.0}, \
             \"total_rate\": {:.0}, \"peak_bytes\": {}, \"base_bytes\": {}, \"bytes_per_message\": {:.2}, \
             \"simulated_ps\": {}}}",
            self.transfers,
            self.notices,
            self.operations,
            self.whole,
            self.engine_rate() * 1e6,
            self.total_rate() * 1e6,
            self.peak_bytes,
            self.base_bytes,
            self.bytes_per_message(),
            self.simulated_ps
        )
    }

    /// One line for the parent process.
    pub fn line(&self) -> String {
        let times: String = self.seconds.iter().map(|s| format!(" {s:.9}")).collect();
        format!(
            "{} {} {}{times} {:.9} {} {} {}",
            self.transfers,
            self.notices,
            self.operations,
            self.whole,
            self.peak_bytes,
            self.base_bytes,
            self.simulated_ps
        )
    }

    /// Read [`Figures::line`].
    pub fn parse(line: &str) -> Result<Self, String> {
        let words: Vec<f64> = line
            .split_whitespace()
            .map(|word| {
                word.parse()
                    .map_err(|_| format!("`{line}` is not a line of figures"))
            })
            .collect::<Result<_, _>>()?;
        let [transfers, notices, operations, times @ .., whole, peak, base, simulated] = &words[..]
        else {
            return Err(format!("`{line}` is not a line of figures"));
        };
        Ok(Figures {
            transfers: *transfers as u64,
            notices: *notices as u64,
            operations: *operations as u64,
            seconds: times.try_into().map_err(|_| "six stages".to_string())?,
            whole: *whole,
            peak_bytes: *peak as u64,
            base_bytes: *base as u64,
            simulated_ps: *simulated as u64,
        })
    }

    /// The median of each figure over launches of the same workload.
    pub fn median(launches: Vec<Figures>) -> Figures {
        let of = |figure: &dyn Fn(&Figures) -> f64| {
            median(launches.iter().map(figure).collect::<Vec<_>>())
        };
        Figures {
            seconds: std::array::from_fn(|stage| of(&|f| f.seconds[stage])),
            whole: of(&|f| f.whole),
            peak_bytes: of(&|f| f.peak_bytes as f64) as u64,
            base_bytes: of(&|f| f.base_bytes as f64) as u64,
            ..launches[0].clone()
        }
    }
}

/// The middle one, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}
