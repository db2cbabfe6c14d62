//! On which hosts a VM is started again, the best first.
//!
//! Owns the order alone. What is tried when, and what becomes of it, is the platform's business.

use std::cmp::Reverse;

use storage::MirroredDisk;

use crate::datacentre::Datacentre;

/// What a VM has left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Its host, which is lost.
    Host,
    /// A host that stands, but from which its volume can no longer be reached.
    Volume,
}

/// What a host has of the VM's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holds {
    /// A component that is up to date, the best of them first.
    UpToDate(usize),
    /// One that is behind and may be promoted by force, the best of them first.
    Behind(usize),
    Nothing,
}

/// A host with power.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    host: usize,
    holds: Holds,
    /// Whether it is there for components alone.
    is_for_storage: bool,
    /// VMs on it.
    vms: usize,
    /// How many names its path shares with that of the host that was left, from the region down.
    names_shared: usize,
}

impl Datacentre {
    /// Hosts with power on which a VM may be started again, the best first; none where its volume cannot be had.
    #[must_use]
    pub fn hosts_for_restart(&self, vm: usize, left: Left) -> Vec<usize> {
        let disk = self.vms[vm].volume().mirrored();
        let lost = self.vms[vm].host();
        let with_data = disk.map_or_else(Vec::new, MirroredDisk::hosts_to_start);
        let holds = |host: usize| match with_data.iter().position(|(with, _)| *with == host) {
            Some(rank) if with_data[rank].1 => Holds::UpToDate(rank),
            Some(rank) => Holds::Behind(rank),
            None => Holds::Nothing,
        };
        let candidate = |host: usize| Candidate {
            host,
            holds: holds(host),
            is_for_storage: disk.is_some_and(|disk| disk.is_for_storage(host)),
            vms: self.vms.iter().filter(|vm| vm.is_on() && vm.host() == host).count(),
            names_shared: {
                let pair = self.hosts[host].path.iter().zip(&self.hosts[lost].path);
                pair.take_while(|(here, there)| here == there).count()
            },
        };
        // A VM whose data is elsewhere may run where it ran; any other left its host because that is lost.
        let may = |host: &usize| self.hosts[*host].is_on() && (disk.is_some() || *host != lost);
        let candidates: Vec<Candidate> = (0..self.hosts.len()).filter(may).map(candidate).collect();
        if disk.is_some() && candidates.iter().all(|of| of.holds == Holds::Nothing) {
            return Vec::new();
        }
        order(candidates, left)
    }
}

/// After the loss of a host, the data's place counts more than the way there, but what is there for storage runs nodes last.
/// Where the way to the data was lost, only the data's own place needs none, and comes first whatever it is there for.
fn order(mut candidates: Vec<Candidate>, left: Left) -> Vec<usize> {
    let group = |of: &Candidate| match (of.holds, of.is_for_storage, left) {
        (Holds::UpToDate(_), _, Left::Volume) => Some(0),
        (Holds::UpToDate(_) | Holds::Behind(_), false, _) => Some(1),
        (Holds::Nothing, false, _) => Some(2),
        (Holds::UpToDate(_) | Holds::Behind(_), true, _) => Some(3),
        (Holds::Nothing, true, _) => None,
    };
    candidates.retain(|of| group(of).is_some());
    candidates.sort_by_key(|of| {
        (group(of), of.is_for_storage, of.holds, of.vms, Reverse(of.names_shared), of.host)
    });
    candidates.into_iter().map(|of| of.host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts as `u` up to date, `b` behind or `-`, `s` where they are there for storage, VMs on them and names shared; and
    /// their order.
    fn check(hosts: &str, left: Left, expected: &[usize]) {
        let mut rank = 0;
        let candidate = |(host, text): (usize, &str)| {
            let signs: Vec<char> = text.chars().collect();
            let digit = |place: usize| signs[place].to_digit(10).expect("a digit") as usize;
            rank += 1;
            let holds = match signs[0] {
                'u' => Holds::UpToDate(rank),
                'b' => Holds::Behind(rank),
                _ => Holds::Nothing,
            };
            let (is_for_storage, vms, names_shared) = (signs[1] == 's', digit(2), digit(3));
            Candidate { host, holds, is_for_storage, vms, names_shared }
        };
        let candidates = hosts.split_whitespace().enumerate().map(candidate).collect();
        assert_eq!(order(candidates, left), expected, "{hosts}");
    }

    #[test]
    fn without_a_mirror_the_host_with_the_fewest_nodes_comes_first_and_of_those_the_nearest() {
        check("-n12 -n02 -n03 -n03", Left::Host, &[2, 3, 1, 0]);
    }

    #[test]
    fn after_the_loss_of_a_host_the_data_comes_first_and_what_is_there_for_storage_last() {
        check("-n02 un12 us02 -s02", Left::Host, &[1, 0, 2]);
        check("-n02 us02", Left::Host, &[0, 1]);
        check("bn02 un02 -n02", Left::Host, &[1, 0, 2]);
    }

    #[test]
    fn where_the_way_to_the_data_is_lost_the_data_itself_comes_first_even_where_it_is_there_for_storage() {
        check("-n02 us02", Left::Volume, &[1, 0]);
        check("-n02 us02 un12", Left::Volume, &[2, 1, 0]);
        check("bn02 us02 -n02", Left::Volume, &[1, 0, 2]);
        check("bs02 -n02", Left::Volume, &[1, 0]);
    }
}
