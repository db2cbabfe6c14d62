//! What a run saw of its own lab and of strangers: stretches in which a part of the lab stood still, and processes of a
//! node that somebody outside the schedule stopped or killed.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A part of the lab that gives signs of life.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "part", rename_all = "kebab-case")]
pub enum LabPart {
    /// The whole machine was suspended.
    Machine,
    /// The watch over all other parts: nothing is known of any of them.
    Watch,
    /// The process that does the run.
    Supervisor,
    /// The thread that carries packets.
    Fabric,
    /// The machine's disk below the nodes' volumes.
    MachineDisk,
    /// The threads that serve a node's volume.
    Volume {
        /// `n1` is the first.
        node: String,
    },
    /// The first process of a node.
    Init {
        /// `n1` is the first.
        node: String,
    },
    /// The watch of the pods of a database in them.
    Pods,
    /// The thread of a load.
    Load {
        /// As the scenario names it.
        load: String,
    },
}

impl fmt::Display for LabPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabPart::Machine => formatter.write_str("machine (suspended)"),
            LabPart::Watch => formatter.write_str("its watchdog, so the state of the other parts is unknown"),
            LabPart::Supervisor => formatter.write_str("supervisor"),
            LabPart::Fabric => formatter.write_str("fabric"),
            LabPart::MachineDisk => formatter.write_str("machine's disk"),
            LabPart::Volume { node } => write!(formatter, "volume of {node}"),
            LabPart::Init { node } => write!(formatter, "init of {node}"),
            LabPart::Pods => formatter.write_str("watch of the pods"),
            LabPart::Load { load } => write!(formatter, "load {load}"),
        }
    }
}

/// A stretch of time in which parts of the lab gave no sign of life. What was measured meanwhile is not the database's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// All that were silent at the same time.
    pub parts: Vec<LabPart>,
    /// Its beginning on the run's clock, seconds.
    pub from_s: f64,
    /// Its end on the run's clock, seconds.
    pub to_s: f64,
    /// How long it lasted, seconds; longer than from beginning to end where the machine was suspended, because the run's
    /// clock stands still then.
    pub length_s: f64,
    /// For how much of it the thread that watches was ready and waited for a processor, seconds: where it is most of the stall,
    /// the machine had too few of them; where it is little, something else held the supervisor up, such as the machine's disk or
    /// whoever gives this machine its time. None where another part stalled, or the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_for_processor_s: Option<f64>,
    /// How much processor time the hypervisor withheld from this machine meanwhile, of all its processors together, seconds. None
    /// as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors_withheld_s: Option<f64>,
}

impl Stall {
    /// Of these parts, from one moment to another on the run's clock.
    #[must_use]
    pub fn of(parts: Vec<LabPart>, from_s: f64, to_s: f64) -> Stall {
        Stall {
            parts,
            from_s,
            to_s,
            length_s: to_s - from_s,
            waited_for_processor_s: None,
            processors_withheld_s: None,
        }
    }
}

/// What a stranger did to a process, a container or a pod.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "done", rename_all = "kebab-case")]
pub enum Deed {
    /// A signal stopped it; seen at least this long.
    Stopped {
        /// Seconds.
        for_s: f64,
    },
    /// A signal ended it.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// It ended in order, with exit code 0, as a server does when it is told to; the lab had not told it.
    Ended,
    /// A pod was deleted, and its cluster does not say that it was the cluster.
    Deleted,
}

/// Something done to a process of a node, or to its pod, that neither the schedule nor the lab did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// `n1` is the first.
    pub node: String,
    /// The process's program, or the pod or its container.
    pub program: String,
    /// What was done.
    #[serde(flatten)]
    pub deed: Deed,
    /// Whether the scenario says that this may happen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expected: bool,
}

/// Signals by which a program ends itself when it is broken: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGSYS
/// (signal(7)).
const OF_A_CRASH: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

impl Interference {
    /// Whether it leaves doubt about the run: nobody said that it would happen, and the program did not do it to itself.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        !self.expected && !self.is_crash()
    }

    /// Whether this is rather the program's own crash.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        matches!(self.deed, Deed::Killed { signal } if OF_A_CRASH.contains(&signal))
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interference { node, program, deed, expected } = self;
        match deed {
            Deed::Stopped { for_s } => {
                write!(formatter, "{program} on {node} was stopped by a signal for {for_s:.1} s or longer")?;
            }
            Deed::Killed { signal } if self.is_crash() => {
                return write!(formatter, "{program} on {node} crashed (signal {signal})");
            }
            Deed::Killed { signal } => write!(formatter, "{program} on {node} was killed (signal {signal})")?,
            Deed::Ended => {
                write!(formatter, "{program} on {node} ended in order (exit code 0) without being asked")?
            }
            Deed::Deleted => write!(
                formatter,
                "{program} on {node} was deleted, and its cluster does not say that it did it"
            )?,
        }
        if *expected { formatter.write_str(", which the scenario expects") } else { Ok(()) }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the lab stalled for {:.1} s from {:.1} s on: ", self.length_s, self.from_s)?;
        // Every other part hangs on this one.
        if self.parts.contains(&LabPart::Supervisor) {
            formatter.write_str("supervisor, with all that it serves")?;
            let Some(waited_s) = self.waited_for_processor_s else { return Ok(()) };
            write!(formatter, " (it waited {waited_s:.1} s of that for a processor")?;
            if let Some(withheld_s) = self.processors_withheld_s.filter(|withheld_s| *withheld_s >= 0.05) {
                write!(formatter, "; the hypervisor withheld {withheld_s:.1} s of processor time")?;
            }
            return formatter.write_str(")");
        }
        let parts: Vec<String> = self.parts.iter().map(LabPart::to_string).collect();
        formatter.write_str(&parts.join(", "))
    }
}
