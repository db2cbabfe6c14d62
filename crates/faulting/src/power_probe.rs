//! Receipts: what is looked at to show that a fault took effect, and that it healed. Looks from where the clients
//! stand and at the kernel's own list of processes, never at what the fault's maker believes.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use history::{HostId, NodeId, Receipt, Verdict};
use lab::probe::NodeNamespaces;
use lab::{attachment, probe};
use platform::{ClientPlace, Datacentre, processes_left};

/// Time between two echo requests.
const ECHO_INTERVAL: Duration = Duration::from_millis(100);
/// How long an address must be silent, beside the site's longest round trip.
const SILENCE: Duration = Duration::from_millis(800);
/// How long an address that ought to answer is waited for before a fault, beside the round trip.
const ANSWER_BEFORE: Duration = Duration::from_millis(500);
/// How long a node may take to answer after its host has power again: boot and recovery of the database included.
const ANSWER_AFTER: Duration = Duration::from_secs(60);

/// A place whose answer is evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// `host dc1/a/r1/h1` or `node n1`.
    pub name: String,
    pub address: IpAddr,
}

/// One look at one address.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Whose.
    pub subject: Subject,
    /// The round trip of its answer, silence, or why it could not be looked at.
    pub answer: Result<Option<Duration>, String>,
}

/// Who looks: clients' place, and how long the longest round trip of the site is.
#[derive(Debug, Clone, Copy)]
pub struct Observer<'a> {
    datacentre: &'a Datacentre,
    place: &'a ClientPlace,
    place_name: &'a str,
    round_trip: Duration,
}

impl<'a> Observer<'a> {
    /// An observer at the first place that clients stand in. `None` where there is no such place.
    #[must_use]
    pub fn new(datacentre: &'a Datacentre, longest_delay: Duration) -> Option<Observer<'a>> {
        let (place_name, place) = datacentre.client_places.iter().next()?;
        Some(Observer { datacentre, place, place_name, round_trip: longest_delay * 2 })
    }

    /// The hosts and VMs given, as subjects.
    #[must_use]
    pub fn subjects(&self, hosts: &[HostId], vms: &[NodeId]) -> Vec<Subject> {
        let hosts = hosts.iter().map(|host| {
            let host = &self.datacentre.hosts[*host];
            Subject { name: format!("host {}", host.name()), address: host.address }
        });
        let vms = vms.iter().map(|vm| {
            let vm = &self.datacentre.vms[*vm];
            Subject { name: format!("node {}", vm.name()), address: vm.address() }
        });
        hosts.chain(vms).collect()
    }

    /// Looks at each address before a fault, when it should answer.
    #[must_use]
    pub fn look_before(&self, subjects: &[Subject]) -> Vec<Look> {
        self.look(subjects, ANSWER_BEFORE + self.round_trip)
    }

    /// Whether the fault took effect: no process left of these nodes, no address answering that did before, and
    /// what the volumes lost.
    #[must_use]
    pub fn power_is_off(
        &self,
        before: &[Look],
        nodes: &[(String, io::Result<NodeNamespaces>)],
        losses: Vec<(Verdict, String)>,
    ) -> Receipt {
        let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        for (node, namespaces) in nodes {
            note(&mut receipt, processes_left(node, namespaces));
        }
        for loss in losses {
            note(&mut receipt, loss);
        }
        let subjects: Vec<Subject> = before.iter().map(|look| look.subject.clone()).collect();
        let patience = SILENCE + self.round_trip;
        for (look, before) in self.look(&subjects, patience).iter().zip(before) {
            note(&mut receipt, self.silence(look, before, patience));
        }
        receipt
    }

    /// Whether the fault is healed: every address answers again, in the time it may take; in a hurry that is short.
    #[must_use]
    pub fn power_is_back(&self, subjects: &[Subject], in_a_hurry: bool) -> Receipt {
        let patience = self.round_trip + if in_a_hurry { ANSWER_BEFORE } else { ANSWER_AFTER };
        let mut receipt = Receipt { verdict: Verdict::Pass, evidence: Vec::new() };
        for look in self.look(subjects, patience) {
            let name = &look.subject.name;
            let (address, place) = (look.subject.address, self.place_name);
            note(
                &mut receipt,
                match look.answer {
                    Ok(Some(after)) => (
                        Verdict::Pass,
                        format!(
                            "{name} ({address}) answers {place} again, in {:.1} ms",
                            after.as_secs_f64() * 1e3
                        ),
                    ),
                    Ok(None) => (
                        Verdict::Fail,
                        format!("{name} ({address}) was silent for {:.1} s", patience.as_secs_f64()),
                    ),
                    Err(why) => (Verdict::Unknown, format!("{name} ({address}) could not be asked: {why}")),
                },
            );
        }
        receipt
    }

    fn silence(&self, look: &Look, before: &Look, patience: Duration) -> (Verdict, String) {
        let (name, address, place) = (&look.subject.name, look.subject.address, self.place_name);
        match (&before.answer, &look.answer) {
            (_, Ok(Some(after))) => {
                let after_ms = after.as_secs_f64() * 1e3;
                (Verdict::Fail, format!("{name} ({address}) still answers {place}, in {after_ms:.1} ms"))
            }
            (Ok(Some(earlier)), Ok(None)) => (
                Verdict::Pass,
                format!(
                    "{name} ({address}) answered {place} in {:.1} ms before and was silent for {:.1} s after",
                    earlier.as_secs_f64() * 1e3,
                    patience.as_secs_f64()
                ),
            ),
            (Ok(None), Ok(None)) => {
                (Verdict::Unknown, format!("{name} ({address}) was silent before the fault as well"))
            }
            (Err(why), _) | (_, Err(why)) => {
                (Verdict::Unknown, format!("{name} ({address}) could not be asked: {why}"))
            }
        }
    }

    /// Looks at all addresses at once, each from a thread of its own in the clients' place.
    fn look(&self, subjects: &[Subject], patience: Duration) -> Vec<Look> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = subjects
                .iter()
                .map(|subject| {
                    scope.spawn(move || {
                        attachment::enter(self.place.namespace())
                            .and_then(|()| probe::echo(subject.address, ECHO_INTERVAL, patience))
                            .map_err(|error| error.to_string())
                    })
                })
                .collect();
            let answers = threads.into_iter().map(|thread| thread.join());
            subjects
                .iter()
                .zip(answers)
                .map(|(subject, answer)| Look {
                    subject: subject.clone(),
                    answer: answer.unwrap_or_else(|_| Err("the probe panicked".to_owned())),
                })
                .collect()
        })
    }
}

fn note(receipt: &mut Receipt, (verdict, sentence): (Verdict, String)) {
    receipt.verdict = receipt.verdict.and(verdict);
    receipt.evidence.push(sentence);
}
