//! Hosts that reach no other host: who notices it, and what is done with the VMs on them.
//!
//! Owns the watch, and how the response is carried out and told; which it is `decisions` says. Each host asks the others by echo
//! requests from where it stands, as the agents of a virtualisation platform do. Nobody here knows which faults stand.

use std::io;
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use history::{EventKind, HostId, NodeId, PlatformAction, Verdict};
use lab::{attachment, probe};

use crate::decisions::Occurrence;
use crate::platform::Platform;

/// Between two questions.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long an answer may take, beside the round trip of the site's links.
const ANSWER: Duration = Duration::from_millis(200);

/// What a host hears of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// At least one of them.
    Another,
    /// None of those that have power.
    None,
    /// Nothing is to be heard: it has no power itself, or no other has.
    NobodyToAsk,
}

/// What follows from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It has heard none for so long that it counts as isolated.
    Isolated,
    /// It was isolated, and hears another.
    Returned,
}

/// How long a host has heard no other.
#[derive(Debug, Clone, Copy)]
struct Silence {
    /// After how long it counts as isolated.
    after: Duration,
    /// Since when.
    since: Option<Instant>,
    is_isolated: bool,
}

impl Silence {
    /// It asked at that moment, and this came of it by now.
    fn hears(&mut self, heard: Heard, asked: Instant, now: Instant) -> Option<Turn> {
        if heard != Heard::None {
            self.since = None;
            let returns = heard == Heard::Another && std::mem::take(&mut self.is_isolated);
            return returns.then_some(Turn::Returned);
        }
        let since = *self.since.get_or_insert(asked);
        let is_due = now.saturating_duration_since(since) >= self.after;
        if !is_due || self.is_isolated {
            return None;
        }
        self.is_isolated = true;
        Some(Turn::Isolated)
    }
}

impl Platform {
    /// Lets each host look out for the others. One that has heard none for so long counts as isolated.
    pub(crate) fn watch_isolation(self: &Arc<Self>, after: Duration) {
        for host in self.datacentre.hosts.ids() {
            let platform = Arc::downgrade(self);
            let name = format!("isolation {}", host.index());
            let watch = move || look_out(&platform, host, Silence { after, since: None, is_isolated: false });
            if let Err(error) = std::thread::Builder::new().name(name).spawn(watch) {
                let host = self.datacentre.hosts[host].name();
                self.trouble(&format!("notice whether {host} is isolated"), &error.to_string());
            }
        }
    }

    /// Asks the others one after the other until one answers, first the one that did last.
    fn hears(&self, host: HostId, last: &mut HostId) -> io::Result<Heard> {
        let hosts = &self.datacentre.hosts;
        if !hosts[host].is_on() {
            return Ok(Heard::NobodyToAsk);
        }
        let others = (0..hosts.len()).map(|step| HostId::new((last.index() + step) % hosts.len()));
        let mut heard = Heard::NobodyToAsk;
        for other in others.filter(|other| *other != host) {
            if self.state().stopping {
                return Ok(Heard::NobodyToAsk);
            }
            if !hosts[other].is_on() {
                continue;
            }
            let patience = ANSWER + self.nearness.round_trip(&hosts[host].path, &hosts[other].path);
            if probe::echo(hosts[other].address, patience, patience)?.is_some() {
                *last = other;
                return Ok(Heard::Another);
            }
            heard = Heard::None;
        }
        Ok(heard)
    }

    fn isolated_in_words(&self, vm: NodeId) -> String {
        let host = self.datacentre.host_of(vm).name();
        let after = self.failover.waits().unwrap_or_default();
        format!("{host} has reached no other host for {:.1} s and counts as isolated", after.as_secs_f64())
    }

    fn tell_isolation(&self, vm: NodeId, what: String) {
        self.events.say(EventKind::Platform {
            action: PlatformAction::Isolation,
            node: vm.to_string(),
            what,
        });
    }

    pub(crate) fn leave_isolated(&self, vm: NodeId) {
        let (why, node) = (self.isolated_in_words(vm), vm.to_string());
        self.tell_isolation(vm, format!("{why}: {node} runs on there, as the isolation response says"));
    }

    /// What follows the loss of a VM follows only once it is known to be off.
    pub(crate) fn switch_off_isolated(&self, vm: NodeId) {
        let hand = self.hands[vm].lock().unwrap_or_else(PoisonError::into_inner);
        let (place, node) = (self.datacentre.vms[vm].host(), vm.to_string());
        let host = self.datacentre.hosts[place].name();
        // Whoever had it may have had it for long: the host may be back, or the node on another.
        if !self.state().isolated.contains(&place) {
            self.tell_isolation(
                vm,
                format!("{node} is not switched off: {host} does not count as isolated any more"),
            );
            return;
        }
        let why = self.isolated_in_words(vm);
        let Some((verdict, shown)) = self.switch_off(vm) else { return };
        drop(hand);
        self.tell_isolation(
            vm,
            format!("{why}: {node} is switched off, as the isolation response says; {shown}"),
        );
        self.events.say(EventKind::NodeDown { node: node.clone(), host });
        if verdict == Verdict::Pass {
            self.follow(&Occurrence::IsolatedFenced(vm));
        } else {
            self.trouble(&format!("replace {node}"), "it may still be running on its isolated host");
        }
    }
}

/// One host's look-out, until the platform ends.
fn look_out(platform: &Weak<Platform>, host: HostId, mut silence: Silence) {
    let mut last = HostId::new(host.index() + 1);
    let mut is_inside = false;
    loop {
        let Some(platform) = platform.upgrade().filter(|platform| !platform.state().stopping) else { return };
        let place = &platform.datacentre.hosts[host];
        let entered = if is_inside { Ok(()) } else { attachment::enter(place.namespace()) };
        is_inside = true;
        let asked = Instant::now();
        // An error is no silence: nothing was asked.
        let heard = match entered.and_then(|()| platform.hears(host, &mut last)) {
            Ok(heard) => heard,
            Err(error) => {
                let doing = format!("notice whether {} is isolated", place.name());
                return platform.trouble(&doing, &error.to_string());
            }
        };
        match silence.hears(heard, asked, Instant::now()) {
            Some(Turn::Isolated) => {
                platform.state().isolated.insert(host);
                platform.happens(&Occurrence::HostIsolated(host));
            }
            Some(Turn::Returned) => {
                platform.state().isolated.remove(&host);
                platform.returned(&[host]);
            }
            None => {}
        }
        if !platform.pause(ASK_EVERY) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows after each question, one a second, where a host is isolated after 3 s: `+` another answered, `-` none did, `0`
    /// there was nobody to ask.
    fn turns(heard: &str) -> Vec<(usize, Turn)> {
        let began = Instant::now();
        let mut silence = Silence { after: Duration::from_secs(3), since: None, is_isolated: false };
        let at = |second: usize| began + Duration::from_secs(second as u64);
        let turn = |(second, sign): (usize, char)| {
            let heard = match sign {
                '+' => Heard::Another,
                '-' => Heard::None,
                _ => Heard::NobodyToAsk,
            };
            Some((second, silence.hears(heard, at(second), at(second))?))
        };
        heard.chars().enumerate().filter_map(turn).collect()
    }

    #[test]
    fn a_host_counts_as_isolated_once_after_a_silence_without_a_break_and_returns_once() {
        assert_eq!(turns("+++"), []);
        assert_eq!(turns("+---+---0"), [], "never for 3 s");
        assert_eq!(turns("+------++"), [(4, Turn::Isolated), (7, Turn::Returned)]);
        assert_eq!(
            turns("----0000+"),
            [(3, Turn::Isolated), (8, Turn::Returned)],
            "nobody to ask is no answer"
        );
        assert_eq!(turns("----00--+"), [(3, Turn::Isolated), (8, Turn::Returned)]);
    }
}
