//! Who else's packets cross the narrowest link of a way, and which of them arrived while a probe was on its way.
//!
//! On paper it is known which places share the link; what arrived of theirs is what the receivers' kernels say, which know
//! nothing of the network's rules. Owns seeing them; what they mean for a rate or a queue is `capacity`'s business.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use lab::arrivals::{Arrivals, Arrived};
use lab::stream::{Datagram, Plan, stream};
use paper::RequestedNetwork;

use crate::stations::Station;

/// In a lab of more places, or with more receivers, nobody else is looked for.
const PLACES_MAX: usize = 150;
const RECEIVERS_MAX: usize = 40;

/// A packet of somebody else that crossed the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// When it would have arrived with the delay of the probe's own way.
    pub at: Instant,
    /// Packets on the wire,
    pub packets: u64,
    /// and their bytes.
    pub bytes: u64,
}

/// What became of a probe, and what else crossed the link meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The probe's own datagrams.
    pub datagrams: Vec<Datagram>,
    /// The packets of others in the order of their arrival; `None` where they are not known.
    pub others: Option<Vec<Other>>,
}

/// The places that share the narrowest link of a way.
#[derive(Debug)]
pub struct Sharing {
    places: Vec<Station>,
    /// By the places' numbers: from whom packets come to them over the link, and how long those are delayed behind it.
    receivers: BTreeMap<usize, BTreeMap<IpAddr, Duration>>,
    /// How long the probe's own packets are.
    own_delay: Duration,
}

impl Sharing {
    /// Of the way from one station to another. `None` where nothing limits it, or too many share it.
    #[must_use]
    pub fn of(
        places: Vec<Station>,
        asked: &RequestedNetwork,
        (from, to): (&Station, &Station),
    ) -> Option<Sharing> {
        let link = asked.narrowest_link(&from.path, &to.path)?;
        if places.len() > PLACES_MAX {
            return None;
        }
        let own_delay = asked.delay_behind(link, &from.path, &to.path)?;
        let mut receivers: BTreeMap<usize, BTreeMap<IpAddr, Duration>> = BTreeMap::new();
        for (number, there) in places.iter().enumerate() {
            for here in &places {
                if let Some(delay) = asked.delay_behind(link, &here.path, &there.path) {
                    receivers.entry(number).or_default().insert(here.address, delay);
                }
            }
        }
        (receivers.len() <= RECEIVERS_MAX).then_some(Sharing { places, receivers, own_delay })
    }

    /// Sends a probe and sees who else uses the link meanwhile.
    fn send(&self, from: &Station, to: &Station, plan: Plan) -> io::Result<Sent> {
        let numbers: Vec<usize> = self.receivers.keys().copied().collect();
        let namespaces: Vec<_> = numbers.iter().map(|number| self.places[*number].end().namespace).collect();
        let watch = Arrivals::watch(&namespaces, from.address.is_ipv4());
        let datagrams = stream(from.end(), to.end(), plan)?;
        // A doubt about others is no doubt about the probe: it is judged by itself then.
        let Ok(arrived) = watch.and_then(Arrivals::collect) else {
            return Ok(Sent { datagrams, others: None });
        };
        let is_own = |one: &Arrived, receiver: &Station| {
            one.from == from.address
                && receiver.address == to.address
                && one.datagram_bytes == Some(plan.bytes)
        };
        let other = |one: &Arrived| {
            let number = numbers[one.place];
            let delay = self.receivers[&number].get(&one.from)?;
            let at = (one.at + self.own_delay).checked_sub(*delay)?;
            let Arrived { packets, bytes, .. } = *one;
            (!is_own(one, &self.places[number])).then_some(Other { at, packets, bytes })
        };
        let mut others: Vec<Other> = arrived.iter().filter_map(other).collect();
        others.sort_unstable_by_key(|other| other.at);
        Ok(Sent { datagrams, others: Some(others) })
    }
}

/// Sends a probe from one station to another and, where it is known who shares the narrowest link, sees them.
///
/// # Errors
/// When the probe could not be sent.
pub fn send(sharing: Option<&Sharing>, (from, to): (&Station, &Station), plan: Plan) -> io::Result<Sent> {
    match sharing {
        Some(sharing) => sharing.send(from, to, plan),
        None => Ok(Sent { datagrams: stream(from.end(), to.end(), plan)?, others: None }),
    }
}
