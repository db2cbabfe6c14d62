//! Looking at what a way carries: how much in what time, how much of it waits, and how large its packets may be. What becomes
//! of single datagrams is shown by `ways`.
//!
//! Owns what is to be seen and whether it is; what was imposed is `network`'s business.

pub mod beside;
pub mod capacity;
mod filling;
pub mod sharing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use fabric::Path;
use fabric::overlay::Treatment;
use history::{Receipt, Verdict};
use lab::stream::Plan;
use paper::RequestedNetwork;
use scenario::Conditions;

use crate::datagrams::{first_stations, foreseen as foreseen_on};
use crate::looks::capacity::Capacity;
use crate::looks::sharing::{Sent, Sharing};
use crate::observations::Observations;
use crate::samples::delays::Delays;
use crate::stations::Station;

/// Packets sent to see whether they pass,
const PROBES: f64 = 20.0;
/// and many more where most are lost anyway.
const PROBES_MAX: f64 = 400.0;
/// Between two of them.
const PROBE_INTERVAL: Duration = Duration::from_millis(5);
/// How long the last may take beyond what the way takes.
const PROBE_PATIENCE: Duration = Duration::from_millis(150);
/// The largest packet where none is asked for: what the interfaces send.
const MTU_BYTES: u32 = 1_500;

/// One direction to look at, by the stations' numbers.
#[derive(Debug, Clone)]
pub struct Look {
    /// The station packets leave.
    pub from: usize,
    /// The station they should reach.
    pub to: usize,
    /// How long a packet takes on the way at most, as asked.
    pub way: Duration,
    /// The share of packets that are lost on the way, as asked.
    pub lost: f64,
    /// What is to be seen.
    pub wanted: Wanted,
    /// Who shares the narrowest link, where that is known.
    pub sharing: Option<Arc<Sharing>>,
}

/// What is to be seen.
#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// So much gets through, and so much waits for it.
    Capacity(Capacity),
    /// A packet of so many bytes arrives whole, and a larger one does not. Without the change it would be so with this size.
    Mtu {
        /// The largest that passes.
        bytes: u32,
        /// The largest that passed before, or would while the fault stands.
        otherwise: u32,
    },
}

/// The looks that show what is asked now of the rate, the queue and the packets' size from one place to another, where these
/// conditions changed it from what it was.
#[must_use]
pub fn of_conditions(
    stations: &[Station],
    (from, to): (&Path, &Path),
    conditions: &Conditions,
    (now, otherwise): (&RequestedNetwork, &RequestedNetwork),
    is_healing: bool,
) -> Vec<Look> {
    let Some((here, there)) = first_stations(stations, from, to) else { return Vec::new() };
    let delays = foreseen_on(now, &stations[here], &stations[there]).delays;
    let ends = (&stations[here].path[..], &stations[there].path[..]);
    between(ends, (here, there), conditions, (now, otherwise), delays, is_healing)
}

/// The same between two stations, by their paths and their numbers.
#[must_use]
pub fn between(
    (here, there): (&[String], &[String]),
    (from, to): (usize, usize),
    conditions: &Conditions,
    (now, otherwise): (&RequestedNetwork, &RequestedNetwork),
    delays: Delays,
    is_healing: bool,
) -> Vec<Look> {
    let way = now.treatment(here, there);
    let mut wanted = Vec::new();
    if conditions.mtu_bytes.is_some() {
        let size = |treatment: &Treatment| treatment.mtu_bytes.unwrap_or(MTU_BYTES);
        let otherwise = size(&otherwise.treatment(here, there));
        wanted.push(Wanted::Mtu { bytes: size(&way), otherwise });
    }
    if conditions.rate_bits_per_s.is_some() || conditions.queue.is_some() {
        wanted.push(Wanted::Capacity(Capacity {
            asked: now.narrowest(here, there),
            otherwise: otherwise.narrowest(here, there),
            shows_rate: conditions.rate_bits_per_s.is_some(),
            shows_queue: conditions.queue.is_some(),
            lost: way.loss.value(),
            corrupted: way.corrupt.value(),
            delays,
            overtaking: way.reorder.value(),
            is_healing,
        }));
    }
    let lost = 1.0 - (1.0 - way.loss.value()) * (1.0 - way.corrupt.value());
    wanted
        .into_iter()
        .map(|wanted| Look { from, to, way: delays.most(), lost, wanted, sharing: None })
        .collect()
}

/// Whether what is wanted is seen. The looks of one direction come one by one, because some fill a link.
#[must_use]
pub fn show(stations: &[Station], looks: &[Look]) -> Receipt {
    let mut ways: BTreeMap<(usize, usize), Vec<&Look>> = BTreeMap::new();
    for look in looks {
        ways.entry((look.from, look.to)).or_default().push(look);
    }
    let of_way =
        |looks: &[&Look]| looks.iter().flat_map(|look| look_at(stations, look)).collect::<Observations>();
    let seen: Vec<Observations> = std::thread::scope(|scope| {
        let threads: Vec<_> = ways.values().map(|looks| scope.spawn(move || of_way(looks))).collect();
        let panicked = || vec![(Verdict::Unknown, "a probe panicked".to_owned())];
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
    for (verdict, sentence) in seen.into_iter().flatten() {
        receipt.verdict = receipt.verdict.and(verdict);
        receipt.evidence.push(sentence);
    }
    receipt
}

/// How datagrams are sent.
pub type Send<'a> = &'a dyn Fn(Plan) -> std::io::Result<Sent>;

fn look_at(stations: &[Station], look: &Look) -> Observations {
    let (from, to) = (&stations[look.from], &stations[look.to]);
    let way = format!("from {} to {}", from.name, to.name);
    look.judge(from.header_bytes(), &way, &|plan| sharing::send(look.sharing.as_deref(), (from, to), plan))
}

impl Look {
    /// Sends what shows it and judges; `way` says from where to where.
    pub fn judge(&self, header_bytes: usize, way: &str, send: Send<'_>) -> Observations {
        let patience = PROBE_PATIENCE + self.way;
        match &self.wanted {
            Wanted::Capacity(capacity) => capacity.look(header_bytes, way, patience, send),
            Wanted::Mtu { bytes, otherwise } => {
                mtu((header_bytes, way), (*bytes, *otherwise), (self.lost, patience), send)
            }
        }
    }
}

fn mtu(
    (header_bytes, way): (usize, &str),
    (bytes, otherwise): (u32, u32),
    (lost, patience): (f64, Duration),
    send: Send<'_>,
) -> Observations {
    if bytes == otherwise {
        let told = format!("packets {way} may have {bytes} bytes with and without this fault");
        return vec![(Verdict::Unknown, told)];
    }
    if lost >= 1.0 {
        return vec![(Verdict::Unknown, format!("no packet {way} arrives, of any size"))];
    }
    // The chance that all are lost though they pass is as small as that of the others with none lost.
    let count = (PROBES * (0.5_f64.ln() / lost.max(0.5).ln())).clamp(PROBES, PROBES_MAX) as u32;
    let mut seen = Vec::new();
    // The interface itself sends nothing larger than it may, so nothing is shown of the way.
    for (packet, passes) in
        [(bytes, true), (bytes + 1, false)].into_iter().filter(|(packet, _)| *packet <= MTU_BYTES)
    {
        let plan = Plan {
            count,
            interval: PROBE_INTERVAL,
            bytes: packet as usize - header_bytes,
            patience,
            is_whole: true,
            wants_copies: false,
        };
        seen.push(match send(plan) {
            Err(error) => (Verdict::Unknown, format!("packets {way} could not be tried: {error}")),
            Ok(sent) => {
                let arrived = sent.datagrams.iter().filter(|datagram| !datagram.arrivals.is_empty()).count();
                let verdict = if (arrived > 0) == passes { Verdict::Pass } else { Verdict::Fail };
                (verdict, format!("{arrived} of {count} packets of {packet} bytes {way} arrived whole"))
            }
        });
    }
    seen
}
